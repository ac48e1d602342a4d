"""What a run that goes on is made with: what it was made with, but for the settings that may change.

The easy mistake is to take an option that was not given for one that was given as its default: the number of epochs and
of rows in a step are then those of the run. Nor may the number of ranks change a step: its rows, their order and the
learning rate go by the global batch, which a run keeps.
"""

from dataclasses import replace
from typing import Any

from corpus.display import plural
from trainer.config import OF_THE_RUN, TrainConfig
from trainer.errors import TrainingError
from trainer.files import CHECKPOINTS
from trainer.optimise import learning_rate
from trainer.order import steps_per_epoch

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
        "gradient_bits",
        "precision",
        "preset",
    )
)
"""Settings that change what is learnt by no more than rounding."""

_MENDING = ("learning_rate", "word_rate", "clip_norm")
"""Those by which a run whose loss became no number can go on."""


def go_on(
    state: dict[str, Any], config: TrainConfig, *, digest: str, rows: int, ranks: int
) -> tuple[TrainConfig, list[str]]:
    """The configuration of the run that `state` (checkpoint.py) is of, as it goes on; and what to say of it.

    `digest` is the dataset's, which has so many training `rows`. Raises TrainingError where the state is of another
    run, or `config` asks for what cannot be.
    """
    if config.preset:
        config = replace(config, global_batch=None, rank_batch=None, epochs=None)
    _require_same(state, config, digest)
    made = state["config"]
    notes = [
        f"going on with {_said(name, getattr(config, name))}; it was {value}"
        for name, value in made.items()
        if name in _MENDING and getattr(config, name) != value
    ]
    notes += _of_batch(state, config, ranks)
    notes += _of_epochs(state, config, rows)
    ours = {name: made.get(name) for name in OF_THE_RUN}
    return replace(config, **{**ours, "epochs": config.epochs or ours["epochs"]}), notes


def _require_same(state: dict[str, Any], config: TrainConfig, digest: str) -> None:
    made = f"the checkpoints in {config.output / CHECKPOINTS} were made with"
    otherwise = "resume with what it was made with, or start in another --output"
    if state["digest"] != digest:
        raise TrainingError(f"{made} another dataset than {config.data}; {otherwise}")
    now = config.plain()
    for name, value in state["config"].items():
        if not (name in _MAY_CHANGE or name in _MENDING or name in OF_THE_RUN) and now[name] != value:
            raise TrainingError(f"{made} {_said(name, value)}, not {_said(name, now[name])}; {otherwise}")


def _of_batch(state: dict[str, Any], config: TrainConfig, ranks: int) -> list[str]:
    """What to say where the rows of a step that are asked for are not those of the run."""
    has, asked = state["global_batch"], config.rows_asked(ranks)
    if asked is None or asked == has:
        return []
    if config.rank_batch is None:
        given = f"--global-batch is {asked}"
    else:
        given = f"--rank-batch {config.rank_batch} makes steps of {plural(asked, 'row')} on {plural(ranks, 'rank')}"
        if config.rank_batch == state["config"].get("rank_batch"):
            return [f"{given}, but the run keeps its own, of {plural(has, 'row')}"]
    raise TrainingError(
        f"{given}, but the run in {config.output} has steps of {plural(has, 'row')}; leave it out, or start in another "
        "--output"
    )


def _of_epochs(state: dict[str, Any], config: TrainConfig, rows: int) -> list[str]:
    """What to say where other epochs are asked for than the run was to have."""
    steps = steps_per_epoch(rows, state["global_batch"])
    before = replace(config, epochs=state["config"].get("epochs")).epochs_of(steps)
    now, run = config.epochs or before, f"the run in {config.output}"
    if now == before:
        return []
    epoch, done = state["progress"]["epoch"], state["progress"]["epoch"] * steps + state["progress"]["step"]
    if epoch >= before:
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
        f"going on to {plural(now, 'epoch')}; they were to be {before}. The learning rate is from here on that of a "
        f"run of {now}: at step {done + 1} it is {rates[0]:.2g}, and was to be {rates[1]:.2g}"
    ]


def _said(name: str, value: Any) -> str:
    flag = "--" + name.replace("_", "-")
    return f"no {flag} of its own" if value is None else f"{flag} {value}"
