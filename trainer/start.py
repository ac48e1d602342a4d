"""Starts a run, in the same way on every rank: loads the data, the checkpoint and the row order, and runs loop.py.

Do not trust that all machines received the same input, because ranks with different settings or rows would train
without an error. A resumed run has the configuration of its checkpoint, except for the settings that are allowed to
change. If the user does not give an option, its value in the checkpoint is used, not its default. For example, the
numbers of epochs and of rows per step remain those of the run. The number of ranks must not change a step: its rows,
their order and the learning rate depend only on the global batch, which is constant during a run.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from shoal_balance import BatchOrder

from common.display import plural
from common.errors import TrainingError
from common.options import flag
from trainer.asynchronous import AsynchronousRun
from trainer.clock import Clock
from trainer.config import TrainConfig, implied_settings
from trainer.distributed import failures, memory
from trainer.distributed.ranks import Ranks, StopRequest
from trainer.loop import Trainer
from trainer.options.optimisation_options import KEPT_ON_RESUME
from trainer.output import checkpoint
from trainer.output.run_files import CHECKPOINTS, locked_output, prepare_output, require_free_output
from trainer.synchronous import SynchronousRun
from trainer.task import TRAINING, DataT, RunData, Task, task_class

_SETTINGS_OF_NODES = ("data", "output", "cache", "threads")
"""Settings that are allowed to differ between ranks, because nodes have different paths, memory and cores."""


def train(config: TrainConfig, ranks: Ranks) -> dict[str, Any]:
    """Train, and return the content of summary.json. Raises the same TrainingError on all ranks if training fails."""
    clock = Clock()
    with StopRequest() as stop, memory.convert_errors(ranks.device), ExitStack() as held:
        run_class = AsynchronousRun if config.optimisation.is_asynchronous else SynchronousRun
        task = task_class(config.model)
        data = load_data(task, config, ranks, lambda: stop.requested)
        with ranks.agreement():
            if ranks.is_first:
                held.enter_context(locked_output(config.output))
        saved, config, notes = load_checkpoint(config, ranks, data)
        if saved is None:
            config, data, notes_of_task = task.resolve_config(config, ranks, data)
            notes += notes_of_task
        global_batch = saved["global_batch"] if saved else config.optimisation.batch_for(ranks.world_size)
        order = make_order(global_batch, config.seed, ranks, data, resumed=saved is not None)
        run = run_class(config, ranks, data, order, saved=saved, clock=clock, stop=stop)
        return Trainer(run).train(notes)


def load_data(task: type[Task[DataT]], config: TrainConfig, ranks: Ranks, stop: Callable[[], bool]) -> DataT:
    """Load the data of a run with this task, and create the output folder.

    Raises TrainingError on all ranks if a rank cannot read the data, or if a rank's dataset or settings differ from
    those of the first rank. Also raises TrainingError if a new run would remove the checkpoints of an unfinished run,
    or would replace a model without `--force`.
    """
    with ranks.agreement():
        if ranks.is_first and not config.resume:
            require_free_output(config.output, force=config.force)
    free = min(ranks.gather(memory.free()))  # before any rank allocates memory
    with ranks.agreement(loading=True):
        if config.slow and max(config.slow) >= ranks.world_size:
            raise TrainingError(f"--slow names rank {max(config.slow)}, but the ranks are 0 to {ranks.world_size - 1}")
        data = task.load(config, ranks, memory=free // ranks.local_size, stop=stop)
        if ranks.is_first:
            prepare_output(config.output)
    plain, digest = ranks.broadcast((config.plain(), data.digest))
    with ranks.agreement():
        for name, value in config.plain().items():
            if name not in _SETTINGS_OF_NODES and value != plain[name]:
                raise TrainingError(
                    f"{flag(name)} is {value} on this rank and {plain[name]} on the first rank; start all ranks "
                    "with equal options"
                )
        if data.digest != digest:
            raise TrainingError(
                f"{config.data} differs from the dataset of the first rank (digest {data.digest}, not {digest}); "
                "copy the same file to every node"
            )
    return data


def load_checkpoint(
    config: TrainConfig, ranks: Ranks, data: RunData
) -> tuple[dict[str, Any] | None, TrainConfig, list[str]]:
    """Return the state to resume from (None for a new run), the configuration of the run, and notes for the user.

    Only the first rank has the notes about checkpoints. Raises TrainingError on all ranks if the state belongs to a
    different run, or if a different version of Shoal wrote all checkpoints. If there is no checkpoint, raises the same
    errors as `load_data`.
    """
    state: dict[str, Any] | None = None
    notes: list[str] = []
    if not config.resume:
        return None, config, notes
    folder = config.output / CHECKPOINTS
    holding = ranks.gather(
        (failures.rank_name(ranks.rank), str(folder)) if checkpoint.list_checkpoints(folder) else None
    )
    with ranks.agreement():
        if ranks.is_first:
            _require_first_has_checkpoints(holding, str(folder))
            state, notes = _latest_checkpoint(folder)
            if state is None:
                require_free_output(config.output, force=config.force)
    state = ranks.broadcast(state)
    if state is None:
        return None, config, notes
    with ranks.agreement():
        config, resume_notes = resumed_config(state, config, digest=data.digest)
    return state, config, notes + resume_notes


def make_order(global_batch: int, seed: int, ranks: Ranks, data: RunData, *, resumed: bool) -> BatchOrder:
    """Return the global batches of a new or resumed run on `data`.

    Raises TrainingError on all ranks if a batch has fewer rows than there are ranks.
    """
    order = BatchOrder(rows=data.sizes[TRAINING], global_batch=global_batch, seed=seed)
    with ranks.agreement():
        if ranks.world_size > order.size(0):
            more = "" if resumed else f"raise --global-batch to at least {ranks.world_size}, or "
            raise TrainingError(
                f"{ranks.world_size} ranks cannot share a global batch of {plural(order.size(0), 'row')}; "
                f"{more}start fewer ranks"
            )
    return order


def _require_first_has_checkpoints(holding: list[tuple[str, str] | None], folder: str) -> None:
    """Raise TrainingError if other ranks have checkpoints, but the folder of the first rank is empty.

    `holding` (ranks,): the name and folder of each rank that has checkpoints, and None for the other ranks. If the
    first rank is on a machine that joins a run, this rank must not start the run from the beginning.
    """
    others = [rank for rank in holding if rank]
    if others and holding[0] is None:
        who, there = others[0]
        raise TrainingError(
            f"{who} has checkpoints in {there}, but the first rank has no checkpoint in {folder}; set --output to a "
            "folder that all machines share"
        )


def _latest_checkpoint(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the state of the latest valid checkpoint, and notes for the user.

    Rename later checkpoints that are invalid.
    """
    newest, unusable = checkpoint.newest(folder)
    for passed in unusable:
        if passed.whole and newest is None:  # usually hours of work, although a different version wrote it
            raise TrainingError(
                f"{passed.path} {passed.why}, and it is the only checkpoint; resume with the version that wrote it, "
                "or choose another --output"
            )
    for passed in unusable:
        checkpoint.set_aside(passed.path)
    if newest:
        path, state = newest
        return state, [f"{passed.path} {passed.why}; resuming from {path.name}" for passed in unusable]
    missing = [] if unusable else [f"{folder} contains no checkpoint; starting from the beginning"]
    return None, missing + [f"{passed.path} {passed.why}; starting from the beginning" for passed in unusable]


_FREE = ("balance", "slow", "checkpoint_minutes", "resume", "force", "precision", "preset", "minutes", "fixed")
_MAY_CHANGE = frozenset((*_SETTINGS_OF_NODES, *_FREE))
"""Settings that change the result only by rounding."""

_DERIVED_SETTINGS = ("embedding", "buckets")
"""Settings with a default that depends on the vectors or the rows. A resumed run keeps them."""


def resumed_config(state: dict[str, Any], config: TrainConfig, *, digest: str) -> tuple[TrainConfig, list[str]]:
    """Return the configuration for resuming the run of `state` (checkpoint.py), and notes for the user.

    `digest`: the digest of the dataset. Raises TrainingError if the state belongs to a different run.
    """
    implied = implied_settings(config.model, config.preset)
    left: dict[str, Any] = {name: None for name in KEPT_ON_RESUME if name in implied and name not in config.fixed}
    config = config.changed(**left)
    saved = state["config"]
    _require_same(state, config.plain(), digest)
    kept = {name: saved[name] for name in (*KEPT_ON_RESUME, *_DERIVED_SETTINGS) if name in saved}
    # After the loss became infinite or NaN, the user can resume the run with a smaller learning rate.
    rate = config.optimisation.learning_rate
    before = saved.get("learning_rate", rate)
    notes = [] if rate == before else [f"continuing with --learning-rate {rate}; it was {before}"]
    return config.changed(**kept), notes


def _require_same(state: dict[str, Any], now: Mapping[str, Any], digest: str) -> None:
    made = f"the checkpoints in {now['output']}/{CHECKPOINTS} were made"
    otherwise = "resume with the original setting, or choose another --output"
    if state["digest"] != digest:
        raise TrainingError(f"{made} with a different dataset than {now['data']}; {otherwise}")
    free = {*_MAY_CHANGE, "learning_rate"}
    free |= {name for name in (*KEPT_ON_RESUME, *_DERIVED_SETTINGS) if now.get(name) is None}
    if now["global_batch"] == state["global_batch"]:  # even if the user did not give it
        free.add("global_batch")
    for name, value in state["config"].items():
        if name not in free and now.get(name) != value:
            raise TrainingError(
                f"{made} {_describe_setting(name, value)}, not {_describe_setting(name, now[name])}; {otherwise}"
            )


def _describe_setting(name: str, value: Any) -> str:
    return f"without {flag(name)}" if value is None else f"with {flag(name)} {value}"
