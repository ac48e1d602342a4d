"""Training run as the user wants it: plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from bootstrap.node.documents import RunRequest
from shoal.runs.sources.dataset import PreparedDataset
from shoal.runs.sources.source import Prepared
from shoal.runs.sources.stream import PreparedStream
from shoal.runs.sources.texts import PreparedTexts
from trainer.command_line import from_option_values, option_values
from trainer.config import TrainConfig

_SET_BY_BACKENDS = ("data", "output", "cache")
"""Options with paths, which differ from machine to machine."""
_DATA = Path("dataset")
"""Placeholder for the dataset's path on nodes."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of the nodes of a run."""

    keep: bool = False
    """True if the nodes continue to run after the training."""
    min_nodes: int = 1
    """Minimum number of nodes with which training continues after other nodes were lost."""
    max_dollars: float | None = None
    """Maximum cost of the nodes in dollars; None: no limit."""


NO_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True)
class Run:
    """Training run: the trainer's options, the data, the folder for the results, and the limits of the nodes."""

    name: str = ""
    """Name of the run, which its backend chooses; empty on this machine."""
    options: Mapping[str, tuple[str, ...]]
    """Options of the trainer, except paths: the words of each option's value, by option name."""
    data: Prepared
    output: Path
    cache: Path | None = None
    limits: Limits = NO_LIMITS

    @classmethod
    def of_config(cls, config: TrainConfig, data: Prepared, limits: Limits = NO_LIMITS, *, name: str = "") -> Self:
        """Return the run of a configuration."""
        return cls(
            name=name,
            options=portable_options(config),
            data=data,
            output=config.output,
            cache=config.values()["cache"],
            limits=limits,
        )

    @classmethod
    def of_request(cls, request: RunRequest, output: Path) -> Self:
        """Return the run that a request describes, with `output` as the folder for the results."""
        return cls(
            name=request.run,
            options=request.options,
            data=requested_data(request),
            output=output,
            cache=output,
            limits=Limits(keep=request.keep, min_nodes=request.min_nodes, max_dollars=request.max_dollars),
        )

    @property
    def resumes(self) -> bool:
        return "resume" in self.options

    @property
    def forces(self) -> bool:
        return "force" in self.options

    @cached_property
    def config(self) -> TrainConfig:
        """Configuration of the run. Raises TrainingError if the trainer does not know an option."""
        places = {"data": self.data.local_path or _DATA, "output": self.output}
        return from_option_values(
            self.options, endless=self.data.is_endless, **places, **({"cache": self.cache} if self.cache else {})
        )


def portable_options(config: TrainConfig) -> dict[str, tuple[str, ...]]:
    """Return the options of a configuration that do not depend on the machine."""
    return {name: words for name, words in option_values(config).items() if name not in _SET_BY_BACKENDS}


def requested_data(request: RunRequest) -> Prepared:
    """Return the data that a request names."""
    if request.texts is not None:
        return PreparedTexts(request.texts, tuple(each.address for each in request.texts.sources))
    if request.stream is not None:
        return PreparedStream(request.stream)
    return PreparedDataset(str(request.dataset))
