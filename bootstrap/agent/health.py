"""What is wrong with a node that still answers: a full disk, or ranks that come no further."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

HUNG_SECONDS = 300.0
"""Without a step for so long, and for many times as long as a step took before, ranks count as hung."""
_HUNG_STEPS = 50
_FULL = 0.98
"""The part of a disk that is used, from which on it counts as full."""


class Health:
    """Looks after a node, again and again."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        """`folder`: on the disk that fills."""
        self._folder, self._clock = folder, clock
        self._began = self._moved = clock()
        self._first: int | None = None
        self._step: int | None = None

    def look(self, step: int | None) -> str:
        """What is wrong: a part of a sentence, or nothing; `step`: the latest step of the ranks, where it is known."""
        return "; ".join(filter(None, (self._disk(), self._hung(step))))

    def _disk(self) -> str:
        with suppress(OSError):
            used = shutil.disk_usage(self._folder)
            if used.used >= _FULL * used.total:
                return f"the disk of {self._folder} is {used.used / used.total:.0%} full"
        return ""

    def _hung(self, step: int | None) -> str:
        now = self._clock()
        if step is None or step != self._step:
            if self._first is None and step is not None:
                self._first, self._began = step, now
            self._step, self._moved = step, now
            return ""
        assert self._first is not None
        usual = (self._moved - self._began) / max(1, step - self._first)
        still = now - self._moved
        if still < max(HUNG_SECONDS, _HUNG_STEPS * usual):
            return ""
        return f"no step for {still / 60:.0f} minutes, where one took {usual:.2f} s before"
