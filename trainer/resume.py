"""The configuration of a resumed run: that of its checkpoint, except for the settings that may change.

Do not treat an option that was not given as if its default had been given: the number of epochs and the rows of a step
are then those of the run. The number of ranks must not change a step either: its rows, their order and the learning
rate depend on the global batch, which a run keeps.
"""

from dataclasses import replace
from typing import Any

from common.errors import TrainingError
from common.options import flag
from trainer.config import TrainConfig
from trainer.options.optimisation_options import OF_THE_RUN
from trainer.output.run_files import CHECKPOINTS

_MAY_CHANGE = frozenset(
    (
        "data",
        "output",
        "balance",
        "rebalance_every",
        "slow",
        "record_every",
        "checkpoint_minutes",
        "resume",
        "force",
        "rows_in",
        "cache",
        "threads",
        "precision",
        "preset",
        "minutes",
        "fixed",
    )
)
"""Settings that change the result by no more than rounding."""

_FOLLOWING = ("embedding", "buckets", "temperature")
"""Settings that follow from vectors or rows where they are not given, and are kept."""

_MAY_CHANGE_AFTER_DIVERGENCE = ("learning_rate", "word_rate", "clip_norm")
"""Settings by which a run whose loss became infinite or NaN can be resumed."""


def resumed_config(state: dict[str, Any], config: TrainConfig, *, digest: str) -> tuple[TrainConfig, list[str]]:
    """The configuration with which the run of `state` (checkpoint.py) is resumed, and notes about it for the user.

    `digest` is that of the dataset. Raises TrainingError if the state is of another run.
    """
    if config.preset:
        left: dict[str, Any] = {name: None for name in OF_THE_RUN if name not in config.fixed}
        config = replace(config, **left)
    made = state["config"]
    _require_same(state, config, digest)
    kept = {name: made[name] for name in (*OF_THE_RUN, *_FOLLOWING) if name in made}
    notes = [
        f"continuing with {flag(name)} {getattr(config, name)}; it was {made[name]}"
        for name in _MAY_CHANGE_AFTER_DIVERGENCE
        if name in made and getattr(config, name) != made[name]
    ]
    return replace(config, **kept), notes


def _require_same(state: dict[str, Any], config: TrainConfig, digest: str) -> None:
    made = f"the checkpoints in {config.output / CHECKPOINTS} were made with"
    otherwise = "resume with what it was made with, or start in another --output"
    if state["digest"] != digest:
        raise TrainingError(f"{made} another dataset than {config.data}; {otherwise}")
    now = config.plain()
    free = {*_MAY_CHANGE, *_MAY_CHANGE_AFTER_DIVERGENCE}
    free |= {name for name in (*OF_THE_RUN, *_FOLLOWING) if now[name] is None}
    if now["global_batch"] == state["global_batch"]:  # also where that is the default
        free.add("global_batch")
    for name, value in state["config"].items():
        if name not in free and now[name] != value:
            raise TrainingError(f"{made} {_as_option(name, value)}, not {_as_option(name, now[name])}; {otherwise}")


def _as_option(name: str, value: Any) -> str:
    return f"no {flag(name)} of its own" if value is None else f"{flag(name)} {value}"
