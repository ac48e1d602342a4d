"""Position of a run in an unbounded stream, which a checkpoint contains: so no line is lost or used twice."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from corpus.stream.parts import part_path
from corpus.stream.progress import ended, reader_folder
from trainer.output.archive import DamagedError
from trainer.task import EpochStatus

_POLL_SECONDS = 0.2
_MOST_SECONDS = 600.0
"""Seconds that the first rank waits for a part before it informs the other ranks that it still waits."""


class StreamPosition:
    """Number of parts that a run has taken from each reader of a stream, and the part that it currently uses."""

    def __init__(self, stream: Path, readers: int) -> None:
        """`stream`: the folder of the stream. `readers`: the number of its readers."""
        self._stream = stream
        self._taken = {reader_folder(stream, number).name: 0 for number in range(readers)}
        self.chosen: tuple[str, int] | None = None
        """Reader and number of the current part; None between two parts."""
        self.words_seen = 0
        """Number of running words in all finished parts."""
        self.words_outside = 0
        """How many of `words_seen` are outside the vocabulary."""

    @property
    def path(self) -> Path:
        """Path of the current part."""
        assert self.chosen is not None
        name, number = self.chosen
        return part_path(self._stream / name, number)

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
                    self.chosen = name, self._taken[name]
                    self._taken[name] += 1
                    return EpochStatus.READY
            # A reader writes its last part before it reports its end, so look for parts again after the reported end.
            if not [name for name in self._taken if not ended(self._stream / name)] and not self._any_part():
                return EpochStatus.END
            if time.monotonic() >= until:
                return EpochStatus.PENDING
            time.sleep(_POLL_SECONDS)
        return EpochStatus.STOP

    def end_part(self, words: int, outside: int) -> None:
        """Finish the current part, which has `words` running words, `outside` of them outside the vocabulary."""
        self.chosen = None
        self.words_seen += words
        self.words_outside += outside

    def plain(self) -> dict[str, Any]:
        return {
            "taken": dict(self._taken),
            "chosen": self.chosen,
            "words_seen": self.words_seen,
            "words_outside": self.words_outside,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the position to a result of `plain`. Raises DamagedError if it is a position in a different stream."""
        taken, chosen = state.get("taken"), state.get("chosen")
        words, outside = state.get("words_seen"), state.get("words_outside")
        if not isinstance(taken, dict) or not type(words) is type(outside) is int or taken.keys() != self._taken.keys():
            raise DamagedError("it contains no position in this stream")
        if chosen is not None and not (isinstance(chosen, tuple) and len(chosen) == 2 and chosen[0] in taken):
            raise DamagedError("it names no part of this stream")
        self._taken, self.chosen = dict(taken), chosen
        self.words_seen, self.words_outside = words, outside

    def _any_part(self) -> bool:
        return any(part_path(self._stream / name, taken).exists() for name, taken in self._taken.items())


def parts_done(position: Mapping[str, Any]) -> dict[str, int]:
    """Return how many parts of each reader are finished at a position. `position`: from `StreamPosition.plain`."""
    done = dict(position["taken"])
    if position["chosen"]:
        done[position["chosen"][0]] -= 1
    return done


def last_parts(state: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the file of each reader's last chosen part from a checkpoint's state.

    Raises DamagedError if the state does not contain these files.
    """
    last = state.get("last")
    if not isinstance(last, dict) or not all(
        isinstance(each, torch.Tensor) and each.dtype == torch.uint8 for each in last.values()
    ):
        raise DamagedError("it contains no parts of a stream")
    return {name: each.numpy().tobytes() for name, each in last.items()}
