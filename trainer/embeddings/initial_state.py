"""State that a run on a stream computes from the first parts of the stream: the vocabulary and the held-out rows.

These parts might not exist when the run resumes, so the state is written to a file of the run.
"""

import io
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import DataError, TrainingError
from common.files import read_regular
from corpus.stream.parts import ROW_TOKENS, Part, part_numbers, part_path, read_part
from corpus.stream.progress import ended, reader_folder
from corpus.stream.stream_settings import StreamSettings
from trainer.embeddings.sampling import Tokens
from trainer.embeddings.text_rows import Vocabulary, count_words, held_out_rows
from trainer.output.run_files import write_whole

_POLL_SECONDS = 0.2
_SHARE_SECONDS = 60.0
"""Seconds that a machine waits for a file that another machine has written to their shared file system."""


@dataclass(frozen=True, kw_only=True)
class InitialState:
    """Initial state of a run, which is computed from the first parts of its stream."""

    vocabulary: Vocabulary
    held_out: Tokens
    """(m, tokens): held-out rows, from the first part of the reader `held_of`."""
    held_of: str
    """Name of the reader that wrote the held-out rows."""
    part_words: int
    """Mean number of running words in a part."""


def await_first_parts(
    stream: Path, settings: StreamSettings, *, words: int, minutes: float | None, stop: Callable[[], bool]
) -> list[tuple[str, int]]:
    """Wait for the first parts of a stream. Return each part's reader and number.

    Waiting ends when the parts contain `words` running words, when the stream ends, when readers pause because they are
    too far ahead, or after half of `minutes`. Raises TrainingError if no part arrives in `minutes`, or if `stop`
    returns True. Raises DataError if a reader has failed.
    """
    folders = [reader_folder(stream, number) for number in range(settings.readers)]
    counted, read, began = 0, list[tuple[str, int]](), time.monotonic()
    while counted < words:
        if stop():
            raise TrainingError("stopped before enough text arrived for a vocabulary")
        over = not [folder for folder in folders if not ended(folder)]
        available = sorted((folder.name, number) for folder in folders for number in part_numbers(folder))
        new = [part for part in available if part not in read]
        if not new and (over or any(len(part_numbers(folder)) > settings.ahead for folder in folders)):
            break  # a reader that is this far ahead pauses until the run has used parts
        if not new and minutes is not None and time.monotonic() - began >= 60 * minutes * (0.5 if read else 1.0):
            break
        if not new:
            time.sleep(_POLL_SECONDS)
        for name, number in new[:1]:
            counted += int(read_shared(part_path(stream / name, number)).counts.sum())
            read.append((name, number))
    if not read:
        raise TrainingError(
            f"no text arrived from {', '.join(settings.sources)}"
            + ("" if minutes is None else f" in {minutes:g} minutes (--minutes)")
            + "; check that a program writes text there"
        )
    return read


def read_initial_state(stream: Path, parts: Sequence[tuple[str, int]], *, min_count: int) -> InitialState:
    """Return the initial state of a run, with a vocabulary from the given parts of a stream.

    Raises TrainingError if no word is frequent enough. Raises DataError if a part is missing or invalid.
    """
    counts = count_words(read_shared(part_path(stream / name, number)) for name, number in parts)
    vocabulary = Vocabulary.of(counts, min_count=min_count, where=stream)
    held_of = min((name for name, number in parts if number == 0), default=None)
    if held_of is None:
        raise DataError(f"the first parts in {stream} were already removed; start a new stream")
    tokens = vocabulary.ids(read_part(part_path(stream / held_of, 0)))
    return InitialState(
        vocabulary=vocabulary,
        held_out=tokens[held_out_rows(len(tokens))],
        held_of=held_of,
        part_words=counts.total() // len(parts),
    )


def write_initial_state(path: Path, state: InitialState) -> None:
    """Write the initial state to a file, which `load_initial_state` reads if the run resumes. Raises TrainingError."""
    content = io.BytesIO()
    np.savez(
        content,
        words=np.frombuffer("\n".join(state.vocabulary.words).encode(), np.uint8),
        counts=state.vocabulary.counts,
        held_out=state.held_out,
        held_of=np.frombuffer(state.held_of.encode(), np.uint8),
        part_words=np.array(state.part_words),
    )
    write_whole(path, content.getvalue())


def load_initial_state(path: Path) -> InitialState | None:
    """Return the initial state from a file of `write_initial_state`; None if the file is missing.

    Raises TrainingError if the file is unreadable or invalid.
    """
    try:
        with np.load(io.BytesIO(read_regular(path)), allow_pickle=False) as arrays:
            words = tuple(arrays["words"].tobytes().decode().split("\n"))
            counts, held_out = arrays["counts"].astype(np.int64), arrays["held_out"].astype(np.int32)
            state = InitialState(
                vocabulary=Vocabulary(words=words, counts=counts),
                held_out=held_out,
                held_of=arrays["held_of"].tobytes().decode(),
                part_words=int(arrays["part_words"]),
            )
            if counts.shape != (len(words),) or held_out.shape[1:] != (ROW_TOKENS,) or held_out.max() >= len(words) + 2:
                raise ValueError("the sizes of its arrays contradict each other")
            return state
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrainingError(f"cannot read {path}: {error.strerror}; make it readable") from error
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        raise TrainingError(
            f"{path} is not the file of a run on a stream: {error}; start the run with a different --output"
        ) from error


def read_shared(path: Path) -> Part:
    """Read a part that another machine has already seen. Wait until the shared file system shows it here, too."""
    deadline = time.monotonic() + _SHARE_SECONDS
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return read_part(path)
