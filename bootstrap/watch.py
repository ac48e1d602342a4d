"""A training run as it is seen from outside: its record, wherever that is written, to one progress bar.

The easy mistake is to read a record that grows as if its last line were whole.
"""

import json
from collections.abc import Iterator
from typing import Any

from bootstrap.progress import Bars


class RunView:
    """Shows what a run's record says; `update` takes the whole record as it is now."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars
        self._started = False

    def update(self, record: str) -> None:
        """Show the newest step."""
        rows = shown = 0
        figures: dict[str, str] = {}
        for line in parse(record):
            if line["kind"] == "start":
                rows = line["steps"] * line["global_batch"]
                shown = line["from_step"] * line["global_batch"]
                batch = line["global_batch"]
            elif line["kind"] == "step":
                shown = line["step"] * batch
                figures |= {"epoch": str(line["epoch"]), "loss": f"{line['loss']:.3f}"}
                figures["split"] = "+".join(map(str, line["split"]))
            elif line["kind"] == "epoch":
                figures["balanced accuracy"] = f"{line['validation']['balanced_accuracy']:.1%}"
        if not rows:
            return
        if not self._started:
            self._bars.stage("train", rows)
            self._started = True
        self._bars.say(**figures)
        self._bars.at(shown)


def parse(record: str) -> Iterator[dict[str, Any]]:
    """The lines of a record.jsonl that are whole."""
    for line in record.splitlines(keepends=True):
        if line.endswith("\n") and line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue  # half a line that a killed run left
