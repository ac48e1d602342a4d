"""Restore a stream from a run's checkpoint if the stream's folder is lost.

The folder of a stream can disappear with its machine, while the checkpoints of the run were copied elsewhere. To
resume, a reader needs two things: the number of its parts that the run has taken, and its latest part, which contains
the offsets in the sources. Restore the stream before readers start, because a reader looks for its latest part only
once. A reader's folder that already has this part or later parts is not changed.
"""

from pathlib import Path

from common.errors import DataError, TrainingError
from common.files import write_whole
from corpus.stream.parts import part_numbers, part_path
from corpus.stream.progress import TAKEN_NAME, write_taken
from trainer.embeddings.stream_rows import last_parts, parts_done
from trainer.output import checkpoint
from trainer.output.archive import DamagedError
from trainer.output.run_files import CHECKPOINTS


def restore_stream(output: Path, stream: Path) -> None:
    """Restore the files that are missing in the folder `stream` from the latest checkpoint in a run's `output`.

    The function does nothing if the run has no checkpoint, or if its text is finite, because finite text is read again.
    Raises DataError.
    """
    try:
        _restore_stream(output, stream)
    except (DamagedError, DataError, LookupError, OSError, TrainingError, TypeError) as error:
        raise DataError(f"the stream cannot continue in {stream}: {error}") from error


def _restore_stream(output: Path, stream: Path) -> None:
    newest, _ = checkpoint.newest(output / CHECKPOINTS)
    if newest is None or not (state := newest[1]["task"]):
        return
    for name, content in last_parts(state).items():
        folder, number = stream / name, state["taken"][name] - 1
        if not [part for part in part_numbers(folder) if part >= number]:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(part_path(folder, number), content)
    if not (stream / TAKEN_NAME).exists():
        write_taken(stream, parts_done(state))
