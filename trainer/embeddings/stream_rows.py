"""Rows of a run on an unbounded stream, which arrives in parts (corpus/stream).

Each part is one epoch. The first rank chooses the next part: the oldest unused part of the reader with the fewest used
parts. All ranks read this part. A checkpoint contains the choice, so a resumed run has the same rows: no line is lost
or used twice. The first rank reports to the readers which finished parts are in a checkpoint, so that readers can
delete these parts. The checkpoint also contains the last part of each reader. The stream can be restored from it in a
different folder (`restore_stream`).

The vocabulary consists of words of the first parts.
"""

import time
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.display import plural
from common.errors import DataError, TrainingError
from corpus.stream.parts import END_OF_LINE, ROW_TOKENS, part_numbers, part_path
from corpus.stream.progress import TAKEN_NAME, write_taken
from corpus.stream.stream_settings import StreamSettings
from corpus.text import UNKNOWN
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.embeddings.initial_state import (
    InitialState,
    await_first_parts,
    load_initial_state,
    read_initial_state,
    read_shared,
    write_initial_state,
)
from trainer.embeddings.options import EmbeddingOptions
from trainer.embeddings.sampling import Tokens
from trainer.embeddings.stream_position import StreamPosition, last_parts, parts_done
from trainer.embeddings.text_rows import TextRows, held_out_rows
from trainer.output import checkpoint
from trainer.output.archive import DamagedError
from trainer.output.run_files import CHECKPOINTS, STREAM, write_whole
from trainer.task import EpochStatus, RowStream


class StreamRows(TextRows):
    """Rows of one part of a stream at a time."""

    def __init__(self, stream: Path, settings: StreamSettings, initial: InitialState, *, began: float) -> None:
        """`began`: the time at which the run started, from time.monotonic()."""
        sources = settings.to_json() + "\n".join(initial.vocabulary.words)
        super().__init__(
            vocabulary=initial.vocabulary,
            tokens=np.zeros((settings.part_rows, ROW_TOKENS), np.int32),  # all parts are read into this array
            held_out=initial.held_out,
            words=initial.part_words,
            digest=blake2b(sources.encode(), digest_size=16).hexdigest(),
        )
        self.stream, self.readers, self.began = stream, settings.readers, began
        self._held_of = initial.held_of

    @property
    def counted_rows(self) -> float:
        return max(1.0, float(self.vocabulary.counts.sum()) * len(self.tokens) / max(1, self.words))

    @property
    def sample(self) -> Tokens:
        return self.held_out

    def load(self, path: Path) -> tuple[int, int]:
        """Read the rows of the part at `path`. Raises DataError if the part is missing or invalid.

        Returns the numbers of running words in the part: all, and those outside the vocabulary.
        """
        part = read_shared(path)
        if part.tokens.shape != self.tokens.shape:
            raise DataError(
                f"{path} has {len(part.tokens):,} rows, but parts of this stream have {len(self.tokens):,}; "
                "start a new stream"
            )
        self.tokens[:] = self.vocabulary.ids(part)
        outside = int((self.tokens == UNKNOWN).sum())
        if path == part_path(self.stream / self._held_of, 0):
            self.tokens[held_out_rows(len(self.tokens))] = END_OF_LINE
        return int(part.counts.sum()), outside


class TextStream(RowStream):
    """Unbounded text of a run, in which each part is an epoch. All ranks read the part that the first rank chooses."""

    def __init__(self, rows: StreamRows, options: EmbeddingOptions, ranks: Ranks) -> None:
        """`rows`: receives the rows of each part. `options`: the run ends after their `words` or `minutes`, if any."""
        self._rows, self._options, self._ranks = rows, options, ranks
        self.position = StreamPosition(rows.stream, rows.readers)
        self._last: dict[str, bytes] = {}  # for each reader, the file of the last part that was chosen
        self._words = self._outside = 0  # numbers of running words in the current part: all, and outside the vocabulary

    def begin_epoch(self, stop: Callable[[], bool], *, wait: bool) -> EpochStatus:
        status = EpochStatus.READY
        with self._ranks.agreement(loading=True):
            if self._ranks.is_first and self.position.chosen is None:
                status = self.position.choose(stop, self.has_reached_end, wait=wait)
        name, position = self._ranks.broadcast((status.name, self.position.plain()))
        status = EpochStatus[name]
        if status is EpochStatus.READY:
            self.position.restore(position)
            with self._ranks.agreement(loading=True):
                self.load_part()
        return status

    def load_part(self) -> None:
        """Read the rows of the chosen part. Raises DataError if the part is missing or invalid."""
        path = self.position.path
        self._words, self._outside = self._rows.load(path)
        self._last[path.parent.name] = path.read_bytes()

    def end_epoch(self) -> None:
        self.position.end_part(self._words, self._outside)

    def state(self) -> dict[str, Any]:
        """Return the position, and the file of each reader's last part as a tensor of bytes."""
        last = {name: torch.frombuffer(bytearray(content), dtype=torch.uint8) for name, content in self._last.items()}
        return {**self.position.plain(), "last": last}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.position.restore(state)
        self._last = last_parts(state)

    def checkpoint_written(self) -> None:
        """Report to the readers which finished parts are in a checkpoint. Raises OSError."""
        write_taken(self._rows.stream, parts_done(self.position.plain()))

    def has_reached_end(self) -> bool:
        """Return whether the requested number of words or of minutes has been reached."""
        words, minutes = self._options.words, self._options.minutes
        late = minutes is not None and time.monotonic() - self._rows.began >= 60 * minutes
        return late or (words is not None and self.position.words_seen >= words)

    def schedule_position(self, epochs: int | None, step: int, steps: int) -> tuple[int, int]:
        """Return a step's position in the learning rate's schedule: the finished and the total amount of work.

        With the option `words`, both are numbers of words, because parts are not full if the stream has little text.
        """
        words = self._options.words
        if not (words and epochs):
            return step, steps
        of_part = steps // epochs
        done = self.position.words_seen + int(step % of_part / of_part * self._words)
        return min(done, words - 1), words

    def summary(self) -> dict[str, Any]:
        return {"words_seen": self.position.words_seen, "words_outside_vocabulary": self.position.words_outside}

    def closing_notes(self) -> list[str]:
        """Return messages for the user at the end of a run."""
        notes, seen, words = [], self.position.words_seen, self._options.words
        if self.position.words_outside:
            notes.append(
                f"{self.position.words_outside:,} of {plural(seen, 'word')} were outside the vocabulary, which "
                "contains words from the beginning of the text (--vocabulary-words)"
            )
        if words is not None and seen < words:
            reason = "the time limit (--minutes) was reached" if self.has_reached_end() else "the stream ended"
            notes.append(f"the run ended after {seen:,} of the {words:,} words that --words asks for, because {reason}")
        return notes


def load_stream(config: TrainConfig, settings: StreamSettings, ranks: Ranks, stop: Callable[[], bool]) -> StreamRows:
    """Return the rows of an unbounded stream.

    The vocabulary is that of the resumed run or, in a new run, that of the first parts. All ranks wait for the first
    parts. Raises TrainingError or DataError.
    """
    options: EmbeddingOptions = config.options
    kept, began, first = config.output / STREAM, time.monotonic(), []
    with ranks.agreement():
        initial = load_initial_state(kept) if config.resume else None
    if not all(ranks.gather(initial is not None)):
        with ranks.agreement(loading=True):
            if ranks.is_first:
                words = min(options.vocabulary_words, options.words or options.vocabulary_words)
                first = await_first_parts(config.data, settings, words=words, minutes=options.minutes, stop=stop)
        initial = read_initial_state(config.data, ranks.broadcast(first), min_count=options.min_count)
    assert initial is not None
    if ranks.is_first:
        config.output.mkdir(parents=True, exist_ok=True)
        write_initial_state(kept, initial)
    return StreamRows(config.data, settings, initial, began=began)


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
        for name, content in last_parts(state).items():
            folder, number = stream / name, state["taken"][name] - 1
            if not [part for part in part_numbers(folder) if part >= number]:
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(part_path(folder, number), content)
        if not (stream / TAKEN_NAME).exists():
            write_taken(stream, parts_done(state))
    except (DamagedError, DataError, LookupError, OSError, TrainingError, TypeError) as error:
        raise DataError(f"the stream cannot continue in {stream}: {error}") from error
