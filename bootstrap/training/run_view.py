"""Shows a training run from its record: as one progress bar, and as curves for TensorBoard.

The last line of a growing record may be incomplete. The record of a resumed run has several `start` lines: the bar goes
back to each of them, and no second bar is added.
"""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bootstrap.progress import Bars
from bootstrap.training.tensorboard import TensorBoardWriter
from corpus.display import printable
from trainer.presets import ENDLESS

_FIGURES = ("loss", "balanced", "of ideal", "cost so far", "epoch", "balanced accuracy", "similarity", "split")
"""In this order: a narrow terminal has no room for the last ones."""


class RunView:
    """Shows a run's record; `feed` takes the bytes that are added to it, from `offset` on."""

    def __init__(
        self, bars: Bars, board: TensorBoardWriter, *, spent: Callable[[], float | None] = lambda: None
    ) -> None:
        """`spent` returns the dollars so far, or None where they are not known."""
        self._bars, self._board, self._spent = bars, board, spent
        self.offset = 0
        """The number of bytes of the record that were fed."""
        self._rest = b""
        self._lines: deque[dict[str, Any]] = deque()
        self._started = self._ended = False
        self._since = time.time()
        self._batch, self._ideal = 0, 0.0
        self._figures: dict[str, str] = {}

    def feed(self, more: bytes) -> None:
        """Take the bytes that were added, and show the newest step; without any, only the time is updated."""
        self.offset += len(more)
        whole, newline, self._rest = (self._rest + more).rpartition(b"\n")
        self._lines.extend(parse_record(whole + newline))
        while self._lines:  # after an interrupt the next call shows the rest
            self._show(self._lines.popleft())
        self._board.flush()
        if self._started and (spent := self._spent()) is not None:
            self._figures["cost so far"] = f"${spent:,.2f}"
        self._bars.say(**{name: self._figures[name] for name in _FIGURES if name in self._figures})
        self._bars.tick()
        if self._ended:
            self._bars.leave()
            self._started = self._ended = False

    def begin_again(self) -> None:
        """Read the record from its start: ranks that start again before the first checkpoint write it anew."""
        self.offset, self._rest = 0, b""

    def _show(self, line: dict[str, Any]) -> None:
        self._board.take(line)
        if line["kind"] == "start":
            self._batch, self._ideal = line["global_batch"], sum(line["own_rates"])
            if not self._started:
                endless = line["epochs"] >= ENDLESS
                self._bars.stage("train", 0 if endless else line["steps"] * self._batch)
            self._bars.begin_at(line["from_step"] * self._batch)
            self._started, self._ended, self._figures = True, False, {}
        elif line["kind"] == "step":
            self._figures |= {"loss": f"{line['loss']:.3f}", "epoch": str(line["epoch"])}
            self._figures["split"] = "+".join(map(str, line["split"]))
            if line["rows_per_second"]:
                self._figures["balanced"] = f"{line['balanced']:.0%}"
                self._figures["of ideal"] = f"{line['rows_per_second'] / self._ideal:.0%}"
                self._bars.pace(line["rows_per_second"])
            self._bars.at(line["step"] * self._batch)
        elif line["kind"] == "epoch":
            self._figures |= _judged(line["validation"])
        elif line["kind"] == "note" and line["time"] >= self._since:
            self._bars.note(printable(line["text"]))
        elif line["kind"] == "end":
            self._ended = True  # unless the run is resumed


def _judged(validation: Mapping[str, Any]) -> dict[str, str]:
    """What a person wants to see of the measures of an epoch."""
    shown = {"balanced_accuracy": "{:.1%}", "similarity": "{:.3f}"}
    return {name.replace("_", " "): how.format(validation[name]) for name, how in shown.items() if validation.get(name)}


def parse_record(record: bytes) -> Iterator[dict[str, Any]]:
    """The complete lines of a record.jsonl, without those that are no JSON object with a `kind`."""
    for line in record.splitlines(keepends=True):
        if line.endswith(b"\n") and line.strip():
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue  # a killed run left half a line
            if isinstance(found, dict) and "kind" in found:
                yield found
