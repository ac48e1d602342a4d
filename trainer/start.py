"""Starts a run, in the same way on every rank: opens the output folder, loads the data, and runs loop.py.

Do not trust that all machines received the same input, because ranks with different settings or rows would train
without an error. The number of ranks must not change a step: its rows, their order and the learning rate depend only on
the global batch, which is constant during a run.
"""

from collections.abc import Callable
from typing import Any

from shoal_balance import BatchOrder

from common.display import plural
from common.errors import TrainingError
from common.options import flag
from trainer.asynchronous import AsynchronousStepper
from trainer.clock import Clock
from trainer.config import TrainConfig
from trainer.distributed import memory
from trainer.distributed.ranks import Ranks, StopSignals
from trainer.loop import Trainer
from trainer.output.opening import opened_output
from trainer.output.run_files import CHECKPOINTS
from trainer.resuming import SETTINGS_OF_NODES, resumed_config
from trainer.synchronous import SynchronousStepper
from trainer.task import TRAINING, DataT, LoopData, Task, task_class


def train(config: TrainConfig, ranks: Ranks) -> dict[str, Any]:
    """Train, and return the content of summary.json. Raises the same TrainingError on all ranks if training fails."""
    clock = Clock()
    with StopSignals() as stop, memory.convert_errors(ranks.device):
        require_equal_settings(config, ranks)
        with opened_output(config.output, ranks, resume=config.resume, force=config.force) as (saved, notes):
            if saved:
                with ranks.agreement():
                    config, resume_notes = resumed_config(saved, config)
                notes += resume_notes
            task = task_class(config.model)
            data = load_data(task, config, ranks, lambda: stop.requested)
            if saved:
                with ranks.agreement():
                    require_same_data(saved, config, data.digest)
            else:
                config, data, notes_of_task = task.resolve_config(config, ranks, data)
                notes += notes_of_task
            global_batch = saved["global_batch"] if saved else config.optimisation.batch_for(ranks.world_size)
            order = make_order(global_batch, config.seed, ranks, data, resumed=saved is not None)
            stepper_class = AsynchronousStepper if config.optimisation.is_asynchronous else SynchronousStepper
            run = stepper_class(config, ranks, data, order, saved=saved, clock=clock, stop=stop)
            return Trainer(run).train(notes)


def require_equal_settings(config: TrainConfig, ranks: Ranks) -> None:
    """Raise TrainingError on all ranks if the ranks have different settings, or fewer ranks than the settings name."""
    settings = config.plain()
    of_first = ranks.broadcast(settings)
    with ranks.agreement():
        for name, value in settings.items():
            if name not in SETTINGS_OF_NODES and value != of_first[name]:
                raise TrainingError(
                    f"{flag(name)} is {value} on this rank and {of_first[name]} on the first rank; start all ranks "
                    "with equal options"
                )
        if config.slow and max(config.slow) >= ranks.world_size:
            raise TrainingError(f"--slow names rank {max(config.slow)}, but the ranks are 0 to {ranks.world_size - 1}")


def load_data(task: type[Task[DataT]], config: TrainConfig, ranks: Ranks, stop: Callable[[], bool]) -> DataT:
    """Load the data of a run with this task.

    Raises TrainingError on all ranks if a rank cannot read the data, or if a rank's data differ from those of the first
    rank.
    """
    free = min(ranks.gather(memory.free()))  # before any rank allocates memory for data
    with ranks.agreement(loading=True):
        data = task.load(config, ranks, memory=free // ranks.local_size, stop=stop)
    digest = ranks.broadcast(data.digest)
    with ranks.agreement():
        if data.digest != digest:
            raise TrainingError(
                f"{config.data} differs from the dataset of the first rank (digest {data.digest}, not {digest}); "
                "copy the same file to every node"
            )
    return data


def require_same_data(state: dict[str, Any], config: TrainConfig, digest: str) -> None:
    """Raise TrainingError if the run of `state` (checkpoint.py) has other data. `digest`: the digest of the data."""
    if state["digest"] != digest:
        raise TrainingError(
            f"the checkpoints in {config.output}/{CHECKPOINTS} were made with a different dataset than {config.data}; "
            "resume with the original setting, or choose another --output"
        )


def make_order(global_batch: int, seed: int, ranks: Ranks, data: LoopData, *, resumed: bool) -> BatchOrder:
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
