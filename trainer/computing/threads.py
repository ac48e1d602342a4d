"""CPU threads of a rank: each thread computes its own rows, as a rank does.

Do not let torch divide single operations among threads. An operation of a small model takes microseconds, so the
threads would synchronise thousands of times per step. A step would take several times as long as with a single thread.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


class Threads:
    """Pool of `count` threads, including the thread that creates it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._others = ThreadPoolExecutor(count - 1, "compute", torch.set_num_threads, (1,)) if count > 1 else None

    def map(self, work: Callable[[Item], Result], parts: Sequence[Item]) -> list[Result]:
        """Return the result of `work` for each of `parts`, in order. The calling thread computes the first part.

        If `work` raises an exception for a part, it is raised again after all parts have been computed.
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
