"""What a run begins with, the same on every rank: its data, its order, and the state that it goes on from.

The easy mistake is to trust that all machines were given the same: ranks with other settings or rows would train
without a word, and to nothing.
"""

import os
from dataclasses import replace
from typing import Any

from corpus.display import plural
from trainer import checkpoint, faults, memory, resume
from trainer.config import TrainConfig
from trainer.errors import TrainingError
from trainer.files import CHECKPOINTS, prepare, require_free
from trainer.order import Order
from trainer.ranks import Ranks
from trainer.task import TRAINING, Data, Loaded, Task

_OWN_SETTINGS = ("data", "output", "rows_in", "cache", "threads")
"""In which ranks may differ: each node has paths, memory and cores of its own."""


def going_on(config: TrainConfig, ranks: Ranks) -> TrainConfig:
    """`config`, with `resume` where torchrun started the ranks of a run again by itself: then nobody could say so.

    That is so where one of the torchrun processes that start these ranks also started those that wrote the newest
    checkpoint. How often torchrun says that it has started ranks again tells nothing: it leaves out the times that a
    machine joined, and counts those that a run was refused. Raises TrainingError on all ranks when one of them cannot
    read the checkpoint.
    """
    again = False
    with ranks.agreement():
        if not config.resume and ranks.launchers and os.environ.get("LOCAL_RANK", "0") == "0":
            found, _ = checkpoint.newest(config.output / CHECKPOINTS)
            again = found is not None and not ranks.launchers.isdisjoint(found[1]["launchers"])
    return replace(config, resume=config.resume or any(ranks.gather(again)))


def data(kind: type[Task[Data]], config: TrainConfig, ranks: Ranks) -> Data:
    """The data of a run of this kind, and an output folder to write to.

    Raises TrainingError on all ranks when one of them cannot have it, or was told of another dataset or run; and where
    a run from the beginning would remove what an unfinished one can go on from, or replace a model unasked.
    """
    with ranks.agreement():
        if ranks.first and not config.resume:
            require_free(config.output, force=config.force)
    free = min(ranks.gather(memory.free()))  # before any rank has filled some
    with ranks.agreement(loading=True):
        if config.slow and max(config.slow) >= ranks.size:
            raise TrainingError(f"--slow names rank {max(config.slow)}, but the ranks are 0 to {ranks.size - 1}")
        found = kind.load(config, ranks, memory=free // ranks.here)
        if ranks.first:
            prepare(config.output)
    plain, digest = ranks.from_first((config.plain(), found.digest))
    with ranks.agreement():
        for name, value in config.plain().items():
            if name not in _OWN_SETTINGS and value != plain[name]:
                flag = "--" + name.replace("_", "-")
                raise TrainingError(
                    f"{flag} is {value} here and {plain[name]} on the first rank; start all ranks alike"
                )
        if found.digest != digest:
            raise TrainingError(
                f"{config.data} is another dataset than the first rank's (digest {found.digest}, not {digest}); "
                "give every node the same file"
            )
    return found


def saved(config: TrainConfig, ranks: Ranks, data: Loaded) -> tuple[dict[str, Any] | None, TrainConfig, list[str]]:
    """The state to go on from, or None to start from the beginning; `config` as the run goes on with it; and what to
    say of it, on the first rank.

    Raises TrainingError on all ranks where the state is of another run, where there is none but another version's, and
    as `data` does where there is none at all.
    """
    state: dict[str, Any] | None = None
    notes: list[str] = []
    if not config.resume:
        return None, config, notes
    folder = config.output / CHECKPOINTS
    holding = ranks.gather((faults.who(ranks.rank), str(folder)) if checkpoint.in_folder(folder) else None)
    with ranks.agreement():
        if ranks.first:
            _require_here(holding, str(folder))
            state, notes = _newest(config)
    state = ranks.from_first(state)
    if state is None:
        return None, config, notes
    with ranks.agreement():
        config, told = resume.go_on(state, config, digest=data.digest, rows=data.sizes[TRAINING], ranks=ranks.size)
    return state, config, notes + told


def order(config: TrainConfig, ranks: Ranks, *, rows: int, saved: dict[str, Any] | None) -> Order:
    """The global batches of a run on so many rows, of the size that `saved` had; without it, of the size asked for.

    Raises TrainingError on all ranks where a batch has fewer rows than there are ranks.
    """
    global_batch = saved["global_batch"] if saved else config.batch_for(ranks.size)
    found = Order(rows=rows, global_batch=global_batch, seed=config.seed)
    with ranks.agreement():
        if ranks.size > found.size(0):
            more = "" if saved else f"raise --global-batch to at least {ranks.size}, or "
            raise TrainingError(
                f"{ranks.size} ranks cannot share a global batch of {plural(found.size(0), 'row')}; "
                f"{more}start fewer ranks"
            )
    return found


def _require_here(holding: list[tuple[str, str] | None], folder: str) -> None:
    """Raise TrainingError where ranks have checkpoints, by `holding`, and the first has none in its folder: a machine
    that joined a run may be the first, and would begin it anew."""
    others = [each for each in holding if each]
    if others and holding[0] is None:
        who, there = others[0]
        raise TrainingError(
            f"{who} has checkpoints in {there}, and the first rank has none in {folder}; give --output a folder that "
            "all machines share"
        )


def _newest(config: TrainConfig) -> tuple[dict[str, Any] | None, list[str]]:
    """The state of the newest sound checkpoint, and what to say of those that are not, which are set aside."""
    folder = config.output / CHECKPOINTS
    found, passed_over = checkpoint.newest(folder)
    for each in passed_over:
        if each.whole and found is None:  # hours of work, as a rule, though not of this version
            raise TrainingError(
                f"{each.path} {each.why}, and there is no other to go on from; go on with what wrote it, or start in "
                "another --output"
            )
    for each in passed_over:
        checkpoint.set_aside(each.path)
    if found:
        path, state = found
        return state, [f"{each.path} {each.why}; going on from {path.name}" for each in passed_over]
    require_free(config.output, force=config.force)
    missing = [] if passed_over else [f"{folder} holds no checkpoint; starting from the beginning"]
    return None, missing + [f"{each.path} {each.why}; starting from the beginning" for each in passed_over]
