"""The threads with which a rank computes on a CPU: each computes rows of its own, as ranks do.

Do not let torch divide each of its operations among threads: those of a small model take microseconds, and threads
would wait for each other thousands of times in a step, several times as long as one thread needs for all of it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads:
    """A pool of `count` threads, of which the thread that creates it is the first."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._others = ThreadPoolExecutor(count - 1, "compute", torch.set_num_threads, (1,)) if count > 1 else None

    def map(self, work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
        """The results of the parts, in their order; this thread computes the first part.

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
