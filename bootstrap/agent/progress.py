"""How far the ranks of a run are, by the record that its first rank writes into the run's folder."""

from contextlib import suppress
from pathlib import Path

from trainer.output.lines import Step, parse_line
from trainer.output.run_files import RECORD

_START, _STEP = b'{"kind": "start"', b'{"kind": "step"'


class RecordedProgress:
    """The latest step in a run's record, and how often its ranks were started; None where it has none.

    Each look reads only what was added since the one before.
    """

    def __init__(self, folder: Path) -> None:
        self._record, self._offset = folder / RECORD, 0
        self.step: int | None = None
        self.attempt: int | None = None

    def look(self) -> None:
        """Read on. A record that cannot be read now is read the next time."""
        latest = b""
        with suppress(OSError), self._record.open("rb") as file:
            if self._record.stat().st_size < self._offset:  # the run has begun again
                self._offset, self.step, self.attempt = 0, None, None
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                if line.startswith(_START):
                    self.attempt = (self.attempt or 0) + 1
                elif line.startswith(_STEP):
                    latest = line
        if isinstance(step := parse_line(latest), Step):  # a killed process may have left half a line
            self.step = step.step
