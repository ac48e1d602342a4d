"""What is wrong with a node that still answers: its GPUs, its disk, its clock, or ranks that come no further."""

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bootstrap.agent.machine import LOOK_SECONDS, run_command
from common.errors import DataError

HUNG_SECONDS = 300.0
"""Without a step for so long, and for many times as long as a step took before, ranks count as hung."""
_HUNG_STEPS = 50
_FULL = 0.98
"""The part of a disk that is used, from which on it counts as full."""
_JUMP_SECONDS = 5.0
_XID = re.compile(r"NVRM: Xid \([^)]*\): (\d{1,3})")
_OF_HARDWARE = frozenset((48, 62, 63, 64, 74, 79, 92, 94, 95, 110, 119, 120, 121, 140, 143))
"""Xids of the GPU, its memory or its links, and not of a program ("Xid Errors" in NVIDIA's GPU deployment guide)."""
_ECC = ("nvidia-smi", "--query-gpu=ecc.errors.uncorrected.volatile.total", "--format=csv,noheader,nounits")


class Health:
    """Looks after a node, again and again."""

    def __init__(self, folder: Path, clock: Callable[[], float], time: Callable[[], float]) -> None:
        """`folder`: on the disk that fills; `clock` never jumps, and `time` is that of day."""
        self._folder, self._clock, self._time = folder, clock, time
        self._began = self._moved = clock()
        self._ahead = time() - clock()
        self._first: int | None = None
        self._step: int | None = None

    def look(self, step: int | None) -> str:
        """What is wrong: a part of a sentence, or nothing; `step`: the latest step of the ranks, where it is known."""
        return "; ".join(filter(None, (*self._gpus(), self._disk(), self._jump(), self._hung(step))))

    def _gpus(self) -> list[str]:
        found: list[str] = []
        with suppress(DataError):
            codes = sorted(
                {int(code) for code in _XID.findall(run_command(("dmesg",), LOOK_SECONDS).stdout)} & _OF_HARDWARE
            )
            found += [f"a GPU has reported Xid {code}" for code in codes]
        with suppress(DataError):
            counts = [line.strip() for line in run_command(_ECC, LOOK_SECONDS).stdout.splitlines()]
            if errors := sum(int(each) for each in counts if each.isdecimal()):
                found.append(f"its GPUs' memory had {errors:,} uncorrectable ECC errors")
        return found

    def _disk(self) -> str:
        with suppress(OSError):
            used = shutil.disk_usage(self._folder)
            if used.used >= _FULL * used.total:
                return f"the disk of {self._folder} is {used.used / used.total:.0%} full"
        return ""

    def _jump(self) -> str:
        before, self._ahead = self._ahead, self._time() - self._clock()
        jumped = self._ahead - before
        return f"its clock has jumped by {jumped:+.0f} s" if abs(jumped) >= _JUMP_SECONDS else ""

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
