"""Shows a training run as one progress bar, from its record.

The last line of a growing record can be incomplete. The record of a resumed run has several `start` lines. At each of
them, the bar returns to the step from which the run was resumed.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from bootstrap.node.store import Store
from common.json_values import finite_numbers
from common.progress import reporter
from corpus.stream.progress import Status
from trainer.embeddings.options import ENDLESS
from trainer.output.lines import End, Epoch, Line, Note, Start, Step, Waiting, parse_line

_FIGURES = (
    "waiting",
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
"""Names of the figures that the bar shows, in their order. A narrow terminal omits the last figures."""

_LONG_WAIT = 30.0
"""Seconds of waiting for text after which a note is printed, even without a progress bar."""
PIECE_BYTES = 4 << 20
"""Maximum number of bytes of a record that are read at once.

The record of a run that another command started can be long, or the file might not be a record.
"""


class RunView:
    """Progress bar of a run. `feed` accepts the bytes of the run's record, from `offset` on."""

    def __init__(
        self,
        *,
        spent: Callable[[], float | None] = lambda: None,
        read: Callable[[], Status] | None = None,
    ) -> None:
        """Create the view.

        Args:
            spent: Returns the cost so far in dollars, or None if it is unknown.
            read: Returns the progress of the readers. The ranks might wait for the readers before they start.
        """
        self._spent, self._read = spent, read
        self.offset = 0
        """Number of bytes of the record that `feed` has received so far."""
        self._rest = b""
        self._lines: deque[Line] = deque()
        self._started = self._ended = False
        self._since = time.time()
        self._batch, self._ideal, self._ranks = 0, 0.0, 0
        self._figures: dict[str, str] = {}
        self._waits_since: float | None = None
        self._noted_vocabulary = False

    def feed(self, more: bytes) -> None:
        """Process the bytes that were appended to the record, and show the newest step.

        Without bytes, only update the time.
        """
        self.offset += len(more)
        whole, newline, rest = (self._rest + more).rpartition(b"\n")
        self._rest = rest[-PIECE_BYTES:]  # longer than any line of a record
        self._lines.extend(filter(None, map(parse_line, (whole + newline).splitlines())))
        while self._lines:  # so that the next call continues here if this call is interrupted
            self._show(self._lines.popleft())
        if self._waits_since is not None and time.time() - self._waits_since >= _LONG_WAIT:
            reporter().note(f"no text arrived for {_LONG_WAIT:.0f} seconds; the run waits for text")
            self._waits_since = None
        if self._read:
            words = self._read().words
            self._figures["words read"] = f"{words:,}"
            if not self._started and not self._noted_vocabulary and time.time() - self._since >= _LONG_WAIT:
                reporter().note(
                    f"{words:,} words arrived so far; the run starts when it has a vocabulary (--vocabulary-words)"
                )
                self._noted_vocabulary = True
        if self._started and (spent := self._spent()) is not None:
            self._figures["cost so far"] = f"${spent:,.2f}"
        reporter().say(**{name: self._figures[name] for name in _FIGURES if name in self._figures})
        reporter().tick()
        if self._ended:
            reporter().leave()
            self._started = self._ended = False

    def restart(self) -> None:
        """Read the record from its beginning again, because ranks that restart before the first checkpoint overwrite
        it.
        """
        self.offset, self._rest = 0, b""

    def _show(self, line: Line) -> None:
        match line:
            case Start():
                self._start(line)
            case Step():
                self._step(line)
            case Waiting():
                self._wait(line)
            case Epoch():
                self._figures |= _measured(line.validation)
            case Note() if line.time >= self._since:
                reporter().note(line.text)
            case End():
                self._waits_since = None
                self._ended = True  # a resumed run starts again

    def _start(self, line: Start) -> None:
        self._batch, self._ideal, self._ranks = line.global_batch, sum(line.own_rates), line.world_size
        if not self._started:
            reporter().stage("train", 0 if line.epochs >= ENDLESS else line.steps * self._batch)
        reporter().begin_at(line.from_step * self._batch)
        self._started, self._ended, self._figures, self._waits_since = True, False, {}, None

    def _step(self, line: Step) -> None:
        self._figures |= {"loss": f"{line.loss:.3f}", "epoch": str(line.epoch)}
        self._figures["step"] = f"{line.step:,}"
        if self._ranks > 1:
            self._figures["split"] = "+".join(map(str, line.split))
        if line.rows_per_second and line.balanced is not None and self._ideal:
            if self._ranks > 1:
                self._figures["balanced"] = f"{line.balanced:.0%}"
                self._figures["of ideal"] = f"{line.rows_per_second / self._ideal:.0%}"
            reporter().pace(line.rows_per_second)
        reporter().at(line.step * self._batch)

    def _wait(self, line: Waiting) -> None:
        """Show the start or the end of a wait for text."""
        if line.seconds:
            self._figures.pop("waiting", None)
            self._waits_since = None
        else:
            self._figures["waiting"] = "for text"
            self._waits_since = line.time


class RecordView:
    """Reads the growing record of a run from a store or its output folder, and shows it."""

    def __init__(self, view: RunView, store: Store, key: str, *, before: int | None) -> None:
        """`before` is the size in bytes of the record before this command started or resumed the run.

        Nothing is shown until the size changes. Without `before`, the whole record is shown.
        """
        self._view, self._store, self._key, self._known = view, store, key, before

    def update(self) -> None:
        """Show the lines that were added since the last call."""
        fed = False
        if (size := self._store.size(self._key)) is not None and size != self._known:
            if size < self._view.offset:
                self._view.restart()
            while self._view.offset < size and (
                more := self._store.read_from(self._key, self._view.offset, PIECE_BYTES)
            ):
                self._view.feed(more)
                fed = True
            self._known = size
        if not fed:
            self._view.feed(b"")  # to show the time, because the ranks might be waiting for text


def _measured(validation: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each validation measure that the progress bar shows, by name."""
    validation = finite_numbers(validation)
    shown = {"balanced_accuracy": "{:.1%}", "similarity": "{:.3f}"}
    return {name.replace("_", " "): how.format(validation[name]) for name, how in shown.items() if validation.get(name)}
