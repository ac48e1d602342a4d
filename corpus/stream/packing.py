"""Packs the words of lines into parts with a fixed number of tokens, and records the position after each part.

A part can end inside a line. The position after such a part has the number of the line's tokens that are already in
parts. The line itself does not count as read, so a reader that resumes from this position reads the whole line again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import numpy as np

from corpus.stream.lines import Batch
from corpus.stream.parts import END_OF_LINE, ROW_TOKENS, Part, Position, Tokens
from corpus.stream.tokenisers import END


class Packer:
    """Collector of tokens for the current part, which has `rows` rows.

    `after` is the reader's position at the end of the previous part.
    """

    def __init__(self, rows: int, number: int, after: Position) -> None:
        self.number = number
        """Number of the current part, from 0."""
        self._rows = rows
        state = asdict(after)
        self._offsets: dict[str, int] = state["offsets"]
        self._partial_lines: dict[str, int] = state["begun"]
        self._identities: dict[str, str] = state["identities"]
        self._ended: set[str] = set(after.ended)
        self.lines, self.text_bytes, self.malformed = after.lines, after.text_bytes, after.malformed
        self.words = after.words
        self._start()

    def add(self, batch: Batch, text_lines: Sequence[int], words: list[str]) -> Iterator[Part]:
        """Add the words of a batch's lines, and yield each part that is full.

        `text_lines` has the indices of the lines that are text. `words` has the words of these lines, with END after
        each line.
        """
        if batch.identity is not None:
            self._identities[batch.address] = batch.identity
        start = 0
        if text_lines:
            # If the file was replaced, the line at this position can have fewer tokens.
            start = min(self._partial_lines.pop(batch.address, 0), words.index(END))
        done = 0
        while len(words) - start >= (room := self._tokens.size - self._filled):
            stop = start + room
            self._fill(words[start:stop])
            done += words[start:stop].count(END)
            line_tokens = stop if not done else next(back for back in range(stop) if words[stop - 1 - back] == END)
            yield self._part(self._position(batch, text_lines, done, line_tokens))
            start = stop
        self._fill(words[start:])
        self._advance(batch, len(text_lines))

    def finish(self) -> Part | None:
        """Return the current part, padded with end-of-line tokens, or None if it is empty."""
        return self._part(self._current_position()) if self._filled else None

    def _start(self) -> None:
        self._tokens: Tokens = np.full(self._rows * ROW_TOKENS, END_OF_LINE, np.int32)
        self._filled = 0
        self._ids = _TokenIds({END: END_OF_LINE})

    def _fill(self, words: list[str]) -> None:
        ids = np.fromiter(map(self._ids.__getitem__, words), np.int32, len(words))
        self._tokens[self._filled : self._filled + len(ids)] = ids
        self._filled += len(ids)
        self.words += int(np.count_nonzero(ids != END_OF_LINE))

    def _part(self, after: Position) -> Part:
        part = Part(
            number=self.number,
            words=tuple(self._ids)[1:],
            counts=np.bincount(self._tokens, minlength=len(self._ids))[1:],
            tokens=self._tokens.reshape(-1, ROW_TOKENS),
            after=after,
        )
        self.number += 1
        self._start()
        return part

    def _current_position(self) -> Position:
        return Position(
            offsets={**self._offsets},
            lines=self.lines,
            words=self.words,
            text_bytes=self.text_bytes,
            malformed=self.malformed,
            begun={**self._partial_lines},
            identities={**self._identities},
            ended=tuple(sorted(self._ended)),
        )

    def _position(self, batch: Batch, text_lines: Sequence[int], done: int, line_tokens: int) -> Position:
        """Return the position after `done` text lines of a batch and `line_tokens` tokens of the next text line."""
        now = self._current_position()
        taken = text_lines[done - 1] + 1 if done else 0
        return replace(
            now,
            offsets={**now.offsets, **({batch.address: batch.ends[taken - 1]} if taken else {})},
            lines=now.lines + taken,
            text_bytes=now.text_bytes + sum(batch.sizes[:taken]),
            malformed=now.malformed + taken - done,
            begun={**now.begun, **({batch.address: line_tokens} if line_tokens else {})},
        )

    def _advance(self, batch: Batch, text_lines: int) -> None:
        if batch.lines:
            self._offsets[batch.address] = batch.ends[-1]
        self.lines += len(batch.lines)
        self.text_bytes += sum(batch.sizes)
        self.malformed += len(batch.lines) - text_lines
        if batch.ended:
            self._ended.add(batch.address)


class _TokenIds(dict[str, int]):
    """Dictionary with the token of each word of a part. Looking up a new word assigns the next token to it."""

    def __missing__(self, word: str) -> int:
        found = self[word] = len(self)
        return found
