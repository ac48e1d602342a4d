"""A stream that is gone is restored from a run's checkpoint.

The folder of a stream may end with the machine that had it, while the checkpoints of its run were copied elsewhere.
What a reader needs to resume is its newest part, which has the offsets in the sources, and how many parts were taken.
Do this before readers start, as they look for their newest part once. A folder that has later parts stays as it is.
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


def put_back(output: Path, stream: Path) -> None:
    """Put into a stream's folder what the newest checkpoint of a run's `output` has of it and the folder lacks.

    Does nothing for a run without checkpoints, and for one on finite text, which is read again. Raises
    DataError.
    """
    try:
        _put_back(output, stream)
    except (DamagedError, DataError, LookupError, OSError, TrainingError, TypeError) as error:
        raise DataError(f"the stream cannot continue in {stream}: {error}") from error


def _put_back(output: Path, stream: Path) -> None:
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
