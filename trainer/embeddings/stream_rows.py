"""Rows of a run on an unbounded stream, which arrives in parts (corpus/stream).

Each part is one epoch. The first rank chooses the next part: the oldest unused part of the reader with the fewest used
parts. All ranks read this part. A checkpoint contains the choice, so a resumed run has the same rows: no line is lost
or used twice. The first rank reports to the readers which finished parts are in a checkpoint, so that readers can
delete these parts. The checkpoint also contains the last part of each reader. The stream can be restored from it in a
different folder (`restore_stream`).

The vocabulary consists of words of the first parts.
"""

import io
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.display import plural
from common.errors import DataError, TrainingError
from common.files import read_regular
from corpus.stream.parts import END_OF_LINE, ROW_TOKENS, Part, part_numbers, part_path, read_part
from corpus.stream.progress import TAKEN_NAME, ended, reader_folder, write_taken
from corpus.stream.stream_settings import StreamSettings
from corpus.text import UNKNOWN
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.embeddings.options import ENDLESS, EmbeddingOptions
from trainer.embeddings.sampling import Tokens
from trainer.embeddings.text_rows import TextRows, Vocabulary, count_words, held_out_rows
from trainer.output import checkpoint
from trainer.output.archive import DamagedError
from trainer.output.run_files import CHECKPOINTS, STREAM, write_whole
from trainer.task import EpochStatus

_POLL_SECONDS = 0.2
_MOST_SECONDS = 600.0
"""Seconds that the first rank waits for a part before it informs the other ranks that it still waits."""
_SHARE_SECONDS = 60.0
"""Seconds that a machine waits for a file that another machine has written to their shared file system."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """Initial state of a run, which is computed from the first parts of its stream."""

    vocabulary: Vocabulary
    held_out: Tokens
    """(m, tokens): held-out rows, from the first part of the reader `held_of`."""
    held_of: str
    """Name of the reader that wrote the held-out rows."""
    part_words: int
    """Mean number of running words in a part."""


class StreamRows(TextRows):
    """Rows of the stream's current part, and the run's position in the stream."""

    def __init__(self, stream: Path, settings: StreamSettings, start: Start, *, began: float) -> None:
        """`began`: the time at which the run started, from time.monotonic()."""
        sources = settings.to_json() + "\n".join(start.vocabulary.words)
        super().__init__(
            vocabulary=start.vocabulary,
            tokens=np.zeros((settings.part_rows, ROW_TOKENS), np.int32),  # all parts are read into this array
            held_out=start.held_out,
            words=start.part_words,
            digest=blake2b(sources.encode(), digest_size=16).hexdigest(),
        )
        self._began, self._stream, self._held_of = began, stream, start.held_of
        self.words_seen = 0
        """Number of running words in all finished parts."""
        self._words_outside = 0  # how many of `words_seen` are outside the vocabulary
        self._taken = {reader_folder(stream, number).name: 0 for number in range(settings.readers)}
        self._chosen: tuple[str, int] | None = None
        self._last: dict[str, bytes] = {}  # for each reader, the file of the last part that was chosen
        self._words = self._outside = 0  # numbers of running words in the current part: all, and outside the vocabulary

    @property
    def counted_rows(self) -> float:
        return max(1.0, float(self.vocabulary.counts.sum()) * len(self.tokens) / max(1, self.words))

    @property
    def sample(self) -> Tokens:
        return self.held_out

    def default_epochs(self, words: int | None) -> int:  # noqa: ARG002
        return ENDLESS

    def schedule_position(self, words: int | None, epochs: int | None, step: int, steps: int) -> tuple[int, int]:
        """Return a step's position in the learning rate's schedule: the finished and the total amount of work.

        With `words` (--words), both are numbers of words, because parts are not full if the stream has little text.
        """
        if not (words and epochs):
            return step, steps
        of_part = steps // epochs
        done = self.words_seen + int(step % of_part / of_part * self._words)
        return min(done, words - 1), words

    def begin_epoch(
        self, options: EmbeddingOptions, ranks: Ranks, stop: Callable[[], bool], *, wait: bool
    ) -> EpochStatus:
        """See `Task.begin_epoch`."""
        status = EpochStatus.READY
        with ranks.agreement(loading=True):
            if ranks.is_first and self._chosen is None:
                status = self.choose(stop, lambda: self._has_reached_end(options), wait=wait)
        name, place = ranks.broadcast((status.name, self.place()))
        status = EpochStatus[name]
        if status is EpochStatus.READY:
            self.set_position(place)
            with ranks.agreement(loading=True):
                self.load()
        return status

    def _has_reached_end(self, options: EmbeddingOptions) -> bool:
        """Return whether the requested number of words or of minutes has been reached."""
        late = options.minutes is not None and time.monotonic() - self._began >= 60 * options.minutes
        return late or (options.words is not None and self.words_seen >= options.words)

    def choose(self, stop: Callable[[], bool], over: Callable[[], bool], *, wait: bool) -> EpochStatus:
        """Choose the next part; only the first rank calls this method. Raises DataError if a reader has failed.

        `over`: returns whether the run has reached its end. `wait`: whether to wait, for a limited time, for a part.
        """
        until = time.monotonic() + (_MOST_SECONDS if wait else 0.0)
        while not stop():
            if over():
                return EpochStatus.END
            for name in sorted(self._taken, key=lambda name: self._taken[name]):
                if part_path(self._stream / name, self._taken[name]).exists():
                    self._chosen = name, self._taken[name]
                    self._taken[name] += 1
                    return EpochStatus.READY
            # A reader writes its last part before it reports its end, so look for parts again after the reported end.
            if not [name for name in self._taken if not ended(self._stream / name)] and not self._any_part():
                return EpochStatus.END
            if time.monotonic() >= until:
                return EpochStatus.PENDING
            time.sleep(_POLL_SECONDS)
        return EpochStatus.STOP

    def load(self) -> None:
        """Read the rows of the chosen part. Raises DataError if the part is missing or invalid."""
        assert self._chosen is not None
        name, number = self._chosen
        path = part_path(self._stream / name, number)
        part = _read_shared(path)
        self._last[name] = path.read_bytes()
        if part.tokens.shape != self.tokens.shape:
            raise DataError(
                f"{path} has {len(part.tokens):,} rows, but parts of this stream have {len(self.tokens):,}; "
                "start a new stream"
            )
        self.tokens[:] = self.vocabulary.ids(part)
        self._words, self._outside = int(part.counts.sum()), int((self.tokens == UNKNOWN).sum())
        if self._chosen == (self._held_of, 0):
            self.tokens[held_out_rows(len(self.tokens))] = END_OF_LINE

    def end_part(self) -> None:
        """Finish the current part after all its steps."""
        self._chosen = None
        self.words_seen += self._words
        self._words_outside += self._outside

    def place(self) -> dict[str, Any]:
        return {
            "taken": dict(self._taken),
            "chosen": self._chosen,
            "words_seen": self.words_seen,
            "words_outside": self._words_outside,
        }

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint: `place()`, and the file of each reader's last part as a tensor of
        bytes."""
        last = {name: torch.frombuffer(bytearray(content), dtype=torch.uint8) for name, content in self._last.items()}
        return {**self.place(), "last": last}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Resume from a checkpoint's `state`. Raises DamagedError if the state does not belong to this stream."""
        self.set_position(state)
        self._last = _last_parts(state)

    def set_position(self, state: Mapping[str, Any]) -> None:
        """Set the position in the stream. Raises DamagedError if it is a position in a different stream."""
        taken, chosen = state.get("taken"), state.get("chosen")
        words, outside = state.get("words_seen"), state.get("words_outside")
        if not isinstance(taken, dict) or not type(words) is type(outside) is int or taken.keys() != self._taken.keys():
            raise DamagedError("it contains no position in this stream")
        if chosen is not None and not (isinstance(chosen, tuple) and len(chosen) == 2 and chosen[0] in taken):
            raise DamagedError("it names no part of this stream")
        self._taken, self._chosen = dict(taken), chosen
        self.words_seen, self._words_outside = words, outside

    def report_to_readers(self) -> None:
        """Report to the readers which finished parts are in a checkpoint. Raises OSError."""
        write_taken(self._stream, _parts_done(self.place()))

    def summary(self) -> dict[str, Any]:
        return {"words_seen": self.words_seen, "words_outside_vocabulary": self._words_outside}

    def closing_notes(self, options: EmbeddingOptions) -> list[str]:
        """Return messages for the user at the end of a run."""
        notes = []
        if self._words_outside:
            notes.append(
                f"{self._words_outside:,} of {plural(self.words_seen, 'word')} were outside the vocabulary, which "
                "contains words from the beginning of the text (--vocabulary-words)"
            )
        if options.words is not None and self.words_seen < options.words:
            reason = "the time limit (--minutes) was reached" if self._has_reached_end(options) else "the stream ended"
            notes.append(
                f"the run ended after {self.words_seen:,} of the {options.words:,} words that --words asks for, "
                f"because {reason}"
            )
        return notes

    def _any_part(self) -> bool:
        return any(part_path(self._stream / name, taken).exists() for name, taken in self._taken.items())


def _parts_done(state: Mapping[str, Any]) -> dict[str, int]:
    """Return how many parts of each reader are finished at a position in the stream. `state`: from `place()`."""
    done = dict(state["taken"])
    if state["chosen"]:
        done[state["chosen"][0]] -= 1
    return done


def _last_parts(state: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the file of each reader's last chosen part from a checkpoint's state.

    Raises DamagedError if the state does not contain these files.
    """
    last = state.get("last")
    if not isinstance(last, dict) or not all(
        isinstance(each, torch.Tensor) and each.dtype == torch.uint8 for each in last.values()
    ):
        raise DamagedError("it contains no parts of a stream")
    return {name: each.numpy().tobytes() for name, each in last.items()}


def load_stream(config: TrainConfig, settings: StreamSettings, ranks: Ranks, stop: Callable[[], bool]) -> StreamRows:
    """Return the rows of an unbounded stream.

    The vocabulary is that of the resumed run or, in a new run, that of the first parts. All ranks wait for the first
    parts. Raises TrainingError or DataError.
    """
    options: EmbeddingOptions = config.options
    kept, began, first = config.output / STREAM, time.monotonic(), []
    with ranks.agreement():
        start = load_start(kept) if config.resume else None
    if not all(ranks.gather(start is not None)):
        with ranks.agreement(loading=True):
            if ranks.is_first:
                words = min(options.vocabulary_words, options.words or options.vocabulary_words)
                first = await_first_parts(config.data, settings, words=words, minutes=options.minutes, stop=stop)
        start = read_start(config.data, ranks.broadcast(first), min_count=options.min_count)
    assert start is not None
    if ranks.is_first:
        config.output.mkdir(parents=True, exist_ok=True)
        write_start(kept, start)
    return StreamRows(config.data, settings, start, began=began)


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
            counted += int(_read_shared(part_path(stream / name, number)).counts.sum())
            read.append((name, number))
    if not read:
        raise TrainingError(
            f"no text arrived from {', '.join(settings.sources)}"
            + ("" if minutes is None else f" in {minutes:g} minutes (--minutes)")
            + "; check that a program writes text there"
        )
    return read


def read_start(stream: Path, parts: Sequence[tuple[str, int]], *, min_count: int) -> Start:
    """Return the initial state of a run, with a vocabulary from the given parts of a stream.

    Raises TrainingError if no word is frequent enough. Raises DataError if a part is missing or invalid.
    """
    counts = count_words(_read_shared(part_path(stream / name, number)) for name, number in parts)
    vocabulary = Vocabulary.of(counts, min_count=min_count, where=stream)
    held_of = min((name for name, number in parts if number == 0), default=None)
    if held_of is None:
        raise DataError(f"the first parts in {stream} were already removed; start a new stream")
    tokens = vocabulary.ids(read_part(part_path(stream / held_of, 0)))
    return Start(
        vocabulary=vocabulary,
        held_out=tokens[held_out_rows(len(tokens))],
        held_of=held_of,
        part_words=counts.total() // len(parts),
    )


def write_start(path: Path, start: Start) -> None:
    """Write the initial state to a file, which `load_start` reads if the run resumes. Raises TrainingError."""
    content = io.BytesIO()
    np.savez(
        content,
        words=np.frombuffer("\n".join(start.vocabulary.words).encode(), np.uint8),
        counts=start.vocabulary.counts,
        held_out=start.held_out,
        held_of=np.frombuffer(start.held_of.encode(), np.uint8),
        part_words=np.array(start.part_words),
    )
    write_whole(path, content.getvalue())


def load_start(path: Path) -> Start | None:
    """Return the initial state from a file of `write_start`; None if the file is missing.

    Raises TrainingError if the file is unreadable or invalid.
    """
    try:
        with np.load(io.BytesIO(read_regular(path)), allow_pickle=False) as arrays:
            words = tuple(arrays["words"].tobytes().decode().split("\n"))
            counts, held_out = arrays["counts"].astype(np.int64), arrays["held_out"].astype(np.int32)
            start = Start(
                vocabulary=Vocabulary(words=words, counts=counts),
                held_out=held_out,
                held_of=arrays["held_of"].tobytes().decode(),
                part_words=int(arrays["part_words"]),
            )
            if counts.shape != (len(words),) or held_out.shape[1:] != (ROW_TOKENS,) or held_out.max() >= len(words) + 2:
                raise ValueError("the sizes of its arrays contradict each other")
            return start
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrainingError(f"cannot read {path}: {error.strerror}; make it readable") from error
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError) as error:
        raise TrainingError(
            f"{path} is not the file of a run on a stream: {error}; start the run with a different --output"
        ) from error


def _read_shared(path: Path) -> Part:
    """Read a part that another machine has already seen. Wait until the shared file system shows it here, too."""
    deadline = time.monotonic() + _SHARE_SECONDS
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    return read_part(path)


def restore_stream(output: Path, stream: Path) -> None:
    """Restore the files that are missing in the folder `stream` from the latest checkpoint in a run's `output`.

    The folder can disappear with its machine, while the checkpoints were copied elsewhere. A reader then needs its
    latest part, which contains the offsets in the sources, and the number of its parts that the run has taken. Restore
    the stream before readers start, because a reader looks for its latest part only once. A reader's folder that
    already has this part or later parts is not changed.

    The function does nothing if the run has no checkpoint, or if its text is finite, because finite text is read again.
    Raises DataError.
    """
    try:
        newest, _ = checkpoint.newest(output / CHECKPOINTS)
        if newest is None or not (state := newest[1]["task"]):
            return
        for name, content in _last_parts(state).items():
            folder, number = stream / name, state["taken"][name] - 1
            if not [part for part in part_numbers(folder) if part >= number]:
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(part_path(folder, number), content)
        if not (stream / TAKEN_NAME).exists():
            write_taken(stream, _parts_done(state))
    except (DamagedError, DataError, LookupError, OSError, TrainingError, TypeError) as error:
        raise DataError(f"the stream cannot continue in {stream}: {error}") from error
