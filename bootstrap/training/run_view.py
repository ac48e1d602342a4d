"""Shows a training run from its record, as one progress bar.

The last line of a growing record may be incomplete. The record of a resumed run has several `start` lines: the bar goes
back to each of them, and no second bar is added.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from bootstrap.agent.store import Store
from bootstrap.progress import Bars
from corpus.stream.progress import Status
from experiments.records.runs import numbers
from trainer.options.embedding_options import ENDLESS
from trainer.options.section import shown_options
from trainer.output.lines import End, Epoch, Line, Note, Search, Start, Step, Trial, Waiting, parse_line

_FIGURES = (
    "waiting",
    "trials",
    "best",
    "loss",
    "words read",
    "balanced",
    "of ideal",
    "cost so far",
    "epoch",
    "balanced accuracy",
    "similarity",
    "split",
    "step",
)
"""In this order: a narrow terminal has no room for the last ones."""

_LONG_WAIT = 30.0
"""Seconds after which a wait for text is worth a sentence, also where no bar is shown."""
PIECE_BYTES = 4 << 20
"""How much of a record is read at once: of a run that others began it may be long, or no record."""


class RunView:
    """Shows a run's record; `feed` takes the bytes that are added to it, from `offset` on."""

    def __init__(
        self,
        bars: Bars,
        *,
        spent: Callable[[], float | None] = lambda: None,
        read: Callable[[], Status] | None = None,
    ) -> None:
        """`spent` returns the dollars so far, or None where they are not known; `read` what readers have done, for
        which the ranks may have to wait before they begin."""
        self._bars, self._spent, self._read = bars, spent, read
        self.offset = 0
        """The number of bytes of the record that were fed."""
        self._rest = b""
        self._lines: deque[Line] = deque()
        self._started = self._ended = False
        self._since = time.time()
        self._batch, self._ideal, self._ranks = 0, 0.0, 0
        self._figures: dict[str, str] = {}
        self._waits_since: float | None = None
        self._told_of_vocabulary = False
        self._search: Search | None = None

    def feed(self, more: bytes) -> None:
        """Take the bytes that were added, and show the newest step; without any, only the time is updated."""
        self.offset += len(more)
        whole, newline, rest = (self._rest + more).rpartition(b"\n")
        self._rest = rest[-PIECE_BYTES:]  # a longer line is no record's
        self._lines.extend(filter(None, map(parse_line, (whole + newline).splitlines())))
        while self._lines:  # after an interrupt the next call shows the rest
            self._show(self._lines.popleft())
        if self._waits_since is not None and time.time() - self._waits_since >= _LONG_WAIT:
            self._bars.note(f"no text has come for {_LONG_WAIT:.0f} seconds; the run waits for it")
            self._waits_since = None
        if self._read:
            words = self._read().words
            self._figures["words read"] = f"{words:,}"
            if not self._started and not self._told_of_vocabulary and time.time() - self._since >= _LONG_WAIT:
                self._bars.note(
                    f"{words:,} words have come so far; the run begins with a vocabulary (--vocabulary-words)"
                )
                self._told_of_vocabulary = True
        if self._started and (spent := self._spent()) is not None:
            self._figures["cost so far"] = f"${spent:,.2f}"
        if self._search:  # by the clock: a trial may take long
            so_far = time.time() - self._search.time
            self._bars.at(round(min(max(so_far, 0.0), self._search.limit)))
        self._bars.say(**{name: self._figures[name] for name in _FIGURES if name in self._figures})
        self._bars.tick()
        if self._ended:
            self._bars.leave()
            self._started = self._ended = False

    def begin_again(self) -> None:
        """Read the record from its start: ranks that start again before the first checkpoint write it anew."""
        self.offset, self._rest = 0, b""

    def _show(self, line: Line) -> None:
        match line:
            case Search():
                self._bars.stage("search", round(line.limit), "s")
                self._search, self._figures = line, {}
            case Trial():
                self._figures["trials"] = str(line.trial)
                if line.best:
                    self._figures["best"] = shown_options(line.settings)
            case Start():
                self._search = None
                self._start(line)
            case Step():
                self._step(line)
            case Waiting():
                self._wait(line)
            case Epoch():
                self._figures |= _measured(line.validation)
            case Note() if line.time >= self._since:
                self._bars.note(line.text)
            case End():
                self._waits_since = self._search = None
                self._ended = True  # unless the run is resumed

    def _start(self, line: Start) -> None:
        self._batch, self._ideal, self._ranks = line.global_batch, sum(line.own_rates), line.world_size
        if not self._started:
            self._bars.stage("train", 0 if line.epochs >= ENDLESS else line.steps * self._batch)
        self._bars.begin_at(line.from_step * self._batch)
        self._started, self._ended, self._figures, self._waits_since = True, False, {}, None

    def _step(self, line: Step) -> None:
        self._figures |= {"loss": f"{line.loss:.3f}", "epoch": str(line.epoch)}
        self._figures |= {"split": "+".join(map(str, line.split)), "step": f"{line.step:,}"}
        if line.rows_per_second and line.balanced is not None and self._ideal:
            if self._ranks > 1:
                self._figures["balanced"] = f"{line.balanced:.0%}"
            self._figures["of ideal"] = f"{line.rows_per_second / self._ideal:.0%}"
            self._bars.pace(line.rows_per_second)
        self._bars.at(line.step * self._batch)

    def _wait(self, line: Waiting) -> None:
        """Show that a wait for text has begun, or that it has ended."""
        if line.seconds:
            self._figures.pop("waiting", None)
            self._waits_since = None
        else:
            self._figures["waiting"] = "for text"
            self._waits_since = line.time


class RecordView:
    """Follows the record of a run in a store, or in the folder of its output."""

    def __init__(self, view: RunView, store: Store, key: str, *, before: int | None) -> None:
        """`before`: the bytes that the record had before the run began, or was resumed; nothing is shown until that
        changes. None: all is shown."""
        self._view, self._store, self._key, self._known = view, store, key, before

    def look(self) -> None:
        """Show what was added since the last look."""
        fed = False
        if (size := self._store.size(self._key)) is not None and size != self._known:
            if size < self._view.offset:
                self._view.begin_again()
            while self._view.offset < size and (
                more := self._store.read_from(self._key, self._view.offset, PIECE_BYTES)
            ):
                self._view.feed(more)
                fed = True
            self._known = size
        if not fed:
            self._view.feed(b"")  # the ranks may wait for text


def _measured(validation: Mapping[str, Any]) -> dict[str, str]:
    """What a person wants to see of the measures of an epoch."""
    validation = numbers(validation)
    shown = {"balanced_accuracy": "{:.1%}", "similarity": "{:.3f}"}
    return {name.replace("_", " "): how.format(validation[name]) for name, how in shown.items() if validation.get(name)}
