"""Opens the output folder of a run on all ranks, before the run loads its data."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from common.errors import TrainingError
from trainer.distributed.ranks import Ranks
from trainer.output import checkpoint
from trainer.output.run_files import CHECKPOINTS, locked_output, prepare_output, require_free_output


@contextmanager
def opened_output(
    output: Path, ranks: Ranks, *, resume: bool, force: bool
) -> Iterator[tuple[dict[str, Any] | None, list[str]]]:
    """Lock the output folder for a block. Yield the state to resume from (None for a new run), and notes for the user.

    `resume`: resume from the latest checkpoint, if there is one. Only the first rank opens the folder and has notes.
    Raises TrainingError on all ranks if the folder is in use or not writable. Also raises it if a new run would remove
    the checkpoints of an unfinished run, or would replace a model without `force`. Also raises it if a different
    version of Shoal wrote the only checkpoints, or if only other ranks have checkpoints.
    """
    state: dict[str, Any] | None = None
    notes: list[str] = []
    folder, found = output / CHECKPOINTS, False
    with ExitStack() as held:
        with ranks.agreement():
            if ranks.is_first:
                prepare_output(output)
                held.enter_context(locked_output(output))
                if resume:  # only now, because a run that is stopping writes a last checkpoint
                    found = bool(checkpoint.list_checkpoints(folder))
                    state, notes = checkpoint.latest(folder)
                if state is None:
                    require_free_output(output, force=force)
        state, found = ranks.broadcast((state, found))
        with ranks.agreement():
            # If the first rank is on a machine that joins a run, it must not start the run from the beginning.
            if resume and not found and checkpoint.list_checkpoints(folder):
                raise TrainingError(
                    f"{folder} contains checkpoints, but the first rank has no checkpoint in its --output; set "
                    "--output to a folder that all machines share"
                )
        yield state, notes
