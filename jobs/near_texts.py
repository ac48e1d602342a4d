"""The texts that have near-duplicates, counted over the pairs that `jobs.compare` found."""

import numpy as np
from pybase64 import b64decode

from jobs.arrays import unpack_arrays
from jobs.shingles import IN_TEST, IN_TRAINING, Numbers

NEAR_KEY = b":near"
"""Of the records of pairs; no word has a colon."""

_MOST_WAITING = 1 << 22
_NONE = np.empty(0, np.uint64)


class NearTexts:
    """Takes the pairs, and counts each text once: it keeps 8 bytes for each."""

    def __init__(self) -> None:
        self._all = _Different()
        self._test = _Different()

    def add(self, value: bytes) -> None:
        """Add a record of pairs."""
        block = unpack_arrays(b64decode(value, validate=True))
        for one, other in ((block["first"], block["second"]), (block["second"], block["first"])):
            self._all.add(one)
            self._test.add(one[(one & IN_TEST > 0) & (other & IN_TRAINING > 0)])

    @property
    def counts(self) -> dict[str, int]:
        """The texts that have a near-duplicate, and those of the test set that have one in the training set."""
        return {"near.texts": len(self._all), "near.test": len(self._test)}


class _Different:
    """Different numbers out of many."""

    def __init__(self) -> None:
        self._waiting, self._count = [_NONE], 0

    def add(self, numbers: Numbers) -> None:
        self._waiting.append(numbers)
        self._count += len(numbers)
        if self._count > _MOST_WAITING:
            len(self)

    def __len__(self) -> int:
        self._waiting, self._count = [np.unique(np.concatenate(self._waiting))], 0
        return len(self._waiting[0])
