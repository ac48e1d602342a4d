"""Restores a stream from a run's checkpoint if its folder is lost.

The folder of a stream may disappear with its machine, while the checkpoints of its run were copied elsewhere. To
resume, a reader needs its latest part, which contains the offsets in the sources, and the number of parts that were
taken. Restore the stream before readers start, because they look for their latest part only once. A folder with later
parts is not changed.
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
    """Restore the files that a stream's folder lacks, from the latest checkpoint in a run's `output`.

    Does nothing for a run without checkpoints, or on finite text, which is read again. Raises DataError.
    """
    try:
        _restore_stream(output, stream)
    except (DamagedError, DataError, LookupError, OSError, TrainingError, TypeError) as error:
        raise DataError(f"the stream cannot continue in {stream}: {error}") from error


def _restore_stream(output: Path, stream: Path) -> None:
    found, _ = checkpoint.newest(output / CHECKPOINTS)
    if found is None or not (state := found[1]["task"]):
        return
    for name, content in last_parts(state).items():
        folder, number = stream / name, state["taken"][name] - 1
        if not [there for there in part_numbers(folder) if there >= number]:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(part_path(folder, number), content)
    if not (stream / TAKEN_NAME).exists():
        write_taken(stream, parts_done(state))
