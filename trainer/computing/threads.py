"""The threads with which a rank computes on a CPU: each works on rows of its own, as ranks do.

The easy mistake is to let torch share out each of its operations instead: those of a small model take microseconds, so
that threads would wait for each other thousands of times in a step, several times as long as one needs for all of it.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads:
    """So many threads, of which the one that makes them is the first."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._others = ThreadPoolExecutor(count - 1, "compute", torch.set_num_threads, (1,)) if count > 1 else None

    def map(self, work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
        """The results of the parts, in their order; the first part is this thread's.

        An error of one of them is raised when all have ended.
        """
        if self._others is None:
            return [work(part) for part in parts]
        waiting = [self._others.submit(work, part) for part in parts[1:]]
        try:
            first = [work(part) for part in parts[:1]]
        finally:
            for each in waiting:
                each.exception()
        return [*first, *(each.result() for each in waiting)]


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
