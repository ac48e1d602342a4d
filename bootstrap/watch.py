"""A training run as it is seen from outside: its record, wherever that is written, to one progress bar.

The easy mistake is to read a record that grows as if its last line were whole.
"""

import json
from collections.abc import Iterator
from typing import Any

from bootstrap.progress import Bars


class RunView:
    """Shows what a run's record says; `feed` takes it as it grows, from `offset` on."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self.offset = 0
        """Bytes of the record that were fed."""
        self._rest = b""
        self._batch, self._ideal = 0, 0.0
        self._figures: dict[str, str] = {}

    def feed(self, more: bytes) -> None:
        """Take what has come since, and show the newest step."""
        self.offset += len(more)
        whole, newline, self._rest = (self._rest + more).rpartition(b"\n")
        for line in parse(whole + newline):
            self._show(line)

    def _show(self, line: dict[str, Any]) -> None:
        if line["kind"] == "start":
            self._batch, self._ideal = line["global_batch"], sum(line["own_rates"])
            self._bars.stage("train", line["steps"] * self._batch)
            self._bars.at(line["from_step"] * self._batch)
        elif line["kind"] == "step":
            self._figures |= {"epoch": str(line["epoch"]), "loss": f"{line['loss']:.3f}"}
            self._figures["split"] = "+".join(map(str, line["split"]))
            if line["rows_per_second"]:
                self._figures["of ideal"] = f"{line['rows_per_second'] / self._ideal:.0%}"
            self._bars.say(**self._figures)
            self._bars.at(line["step"] * self._batch)
        elif line["kind"] == "epoch":
            self._figures["balanced accuracy"] = f"{line['validation']['balanced_accuracy']:.1%}"


def parse(record: bytes) -> Iterator[dict[str, Any]]:
    """The lines of a record.jsonl that are whole."""
    for line in record.splitlines(keepends=True):
        if line.endswith(b"\n") and line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue  # half a line that a killed run left
