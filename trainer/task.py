"""What the loop asks of a task: a kind of learning, on the data of one run.

The loop knows rows by their numbers alone, and steps. A task knows what these rows are, what is learnt from them, how
that is judged, and what is left of it at the end. The easy mistake is to answer by what only one rank knows: all ranks
ask at the same time and, but for the gradients of their own rows, must get the same answers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor, nn

from trainer.balancing.claims import Lengths
from trainer.clock import StepTimer
from trainer.computing.gradients import Compute
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.order import IntArray
from trainer.registry import MODELS

TRAINING, VALIDATION, TEST = "training", "validation", "test"
"""The parts of a task's rows: to learn from; to show after each epoch how a run does; to judge it at the end."""


class Loaded(Protocol):
    """The data of a run, as far as all tasks have them alike."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """How many rows each part has."""
        ...

    @property
    def digest(self) -> str:
        """Of the data: a run goes on with the same alone."""
        ...


Data = TypeVar("Data", bound=Loaded)


class Task(ABC, Generic[Data]):
    """One kind of learning, on the data of one run."""

    model: nn.Module
    """What learns, with all of its parameters on this rank's device."""
    tables: Sequence[Tensor]
    """Those parameters (rows, ...) of which a batch touches few rows. All others have gradients everywhere."""
    precision: str
    """In which layers compute."""

    @staticmethod
    @abstractmethod
    def load(config: TrainConfig, ranks: Ranks, *, memory: int) -> Data:
        """The data that `config` names; this rank may fill `memory` bytes.

        Raises TrainingError or DataError, also on one rank alone: its caller tells the others.
        """

    @abstractmethod
    def __init__(self, config: TrainConfig, ranks: Ranks, data: Data) -> None:
        """The model's weights are drawn from torch's generator. Raises TrainingError, the same on all ranks."""

    @abstractmethod
    def compute(self, timer: StepTimer) -> Compute:
        """What computes the gradients of rows to learn from; `timer` is told its phases."""

    @abstractmethod
    def lengths(self, rows: IntArray) -> Lengths:
        """(n,): how long these rows (n,) to learn from are; ranks share out short and long ones alike."""

    @abstractmethod
    def touched(self, rows: IntArray) -> Sequence[IntArray]:
        """Of each table the rows (m,) that have gradients in a batch of these rows (n,) to learn from."""

    @abstractmethod
    def judge(self, part: str, *, split: IntArray, stop: Callable[[], bool]) -> dict[str, float] | None:
        """The `loss` of the model on a part's rows, and other measures, the same on every rank.

        `split` (ranks,) sums to the part's size: each rank judges so many rows. None, on every rank, once `stop` says
        on any of them that it was asked to stop.
        """

    @abstractmethod
    def measured(self, tested: Mapping[str, float] | None) -> dict[str, float | None]:
        """Of the measures on the test rows those that summary.json begins with; all None in a run that was stopped."""

    @abstractmethod
    def made_with(self) -> dict[str, Any]:
        """What summary.json holds about how the task was set up, such as its precision."""

    @abstractmethod
    def save(self, output: Path, *, epoch: int, tested: Mapping[str, float]) -> None:
        """Leave the model, as it is after so many epochs, in a run's folder."""


def kind_of(model: str) -> type[Task[Any]]:
    """The kind of task that a model belongs to. Raises KeyError for an unknown model."""
    module, name = MODELS[model]
    kind: type[Task[Any]] = getattr(import_module(module), name)
    return kind
