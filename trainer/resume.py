"""The configuration of a resumed run: that of its checkpoint, except for the settings that may change.

Do not treat an option that was not given as if its default had been given: the number of epochs and the rows of a step
are then those of the run. The number of ranks must not change a step either: its rows, their order and the learning
rate depend on the global batch, which a run keeps.
"""

from dataclasses import replace
from typing import Any

from common.display import plural
from common.errors import TrainingError
from common.options import flag
from trainer.computing.optimiser import learning_rate
from trainer.config import TrainConfig
from trainer.options.presets import OF_THE_RUN
from trainer.order import steps_per_epoch
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

_MAY_CHANGE_AFTER_DIVERGENCE = ("learning_rate", "word_rate", "clip_norm")
"""Settings by which a run whose loss became infinite or NaN can be resumed."""


def resumed_config(
    state: dict[str, Any], config: TrainConfig, *, digest: str, rows: int, ranks: int
) -> tuple[TrainConfig, list[str]]:
    """The configuration with which the run of `state` (checkpoint.py) is resumed, and notes about it for the user.

    `digest` is that of the dataset, which has `rows` training rows. Raises TrainingError if the state is of another
    run, or if `config` asks for something impossible.
    """
    if config.preset:
        config = replace(config, global_batch=None, rank_batch=None, epochs=None)
    made = state["config"]
    # What follows from vectors or rows is known at the beginning of a run, and kept.
    kept = {
        name: made[name]
        for name in ("embedding", "buckets", "temperature")
        if getattr(config, name) is None and name in made
    }
    config = replace(config, **kept)
    _require_same(state, config, digest)
    notes = [
        f"continuing with {_as_option(name, getattr(config, name))}; it was {value}"
        for name, value in made.items()
        if name in _MAY_CHANGE_AFTER_DIVERGENCE and getattr(config, name) != value
    ]
    notes += _batch_notes(state, config, ranks)
    notes += _epoch_notes(state, config, rows)
    ours = {name: made.get(name) for name in OF_THE_RUN}
    return replace(config, **{**ours, "epochs": config.epochs or ours["epochs"]}), notes


def _require_same(state: dict[str, Any], config: TrainConfig, digest: str) -> None:
    made = f"the checkpoints in {config.output / CHECKPOINTS} were made with"
    otherwise = "resume with what it was made with, or start in another --output"
    if state["digest"] != digest:
        raise TrainingError(f"{made} another dataset than {config.data}; {otherwise}")
    now = config.plain()
    for name, value in state["config"].items():
        if (
            not (name in _MAY_CHANGE or name in _MAY_CHANGE_AFTER_DIVERGENCE or name in OF_THE_RUN)
            and now[name] != value
        ):
            raise TrainingError(f"{made} {_as_option(name, value)}, not {_as_option(name, now[name])}; {otherwise}")


def _batch_notes(state: dict[str, Any], config: TrainConfig, ranks: int) -> list[str]:
    """Notes for the user if the requested rows of a step are not those of the run."""
    has, asked = state["global_batch"], config.requested_batch(ranks)
    if asked is None or asked == has:
        return []
    own = config.rank_batch or (config.global_batch if config.local_steps else None)
    if own is None:
        given = f"--global-batch is {asked}"
    else:
        name = "rank_batch" if config.rank_batch else "global_batch"
        given = f"{flag(name)} {own} makes steps of {plural(asked, 'row')} on {plural(ranks, 'rank')}"
        if own == state["config"].get(name):
            return [f"{given}, but the run keeps its own, of {plural(has, 'row')}"]
    raise TrainingError(
        f"{given}, but the run in {config.output} has steps of {plural(has, 'row')}; leave it out, or start in another "
        "--output"
    )


def _epoch_notes(state: dict[str, Any], config: TrainConfig, rows: int) -> list[str]:
    """Notes for the user if the requested epochs are not those of the run."""
    steps = steps_per_epoch(rows, state["global_batch"])
    before = replace(config, epochs=state["config"].get("epochs")).epochs_for(steps)
    now, run = config.epochs or before, f"the run in {config.output}"
    if now == before:
        return []
    done = state["progress"]["epoch"] * steps + state["progress"]["step"]
    if done >= before * steps:
        raise TrainingError(
            f"{run} has come to the end of its {plural(before, 'epoch')}; leave out --epochs, or start in another "
            "--output"
        )
    if done > now * steps:
        raise TrainingError(
            f"--epochs is {now}, but {run} has done {plural(done, 'step')} already, of {steps} an epoch; give at least "
            f"{steps_per_epoch(done, steps)}, or leave it out"
        )
    rates = [learning_rate(config, done, each * steps, min(rows, state["global_batch"])) for each in (now, before)]
    return [
        f"continuing to {plural(now, 'epoch')}; they were to be {before}. The learning rate is from here on that of a "
        f"run of {now}: at step {done + 1} it is {rates[0]:.2g}, and was to be {rates[1]:.2g}"
    ]


def _as_option(name: str, value: Any) -> str:
    return f"no {flag(name)} of its own" if value is None else f"{flag(name)} {value}"
