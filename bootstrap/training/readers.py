"""What the readers of a training on a deployment have done, as they report it beside the run's results."""

import math
import time
from contextlib import suppress

from bootstrap.agent.documents import RUNS
from bootstrap.agent.store import Store
from bootstrap.aws.deployment import Deployment
from bootstrap.nodes import fleet
from common.errors import DataError
from corpus.stream.progress import Status, sum_of

_LOOK_SECONDS = 5.0


def count_readers(deployment: Deployment) -> int:
    """How many nodes of a deployment read for those that train. Raises ShoalError where it has no nodes."""
    return sum(group.size for group in fleet.groups(deployment, readers=True) if group.role == "read")


def read_so_far(store: Store, run: str, readers: int) -> Status:
    """What so many readers of a run have done, together. Others may write there, too: what is no status does not
    count."""
    found = []
    for reader in range(readers):
        with suppress(DataError):
            told = store.read(f"{RUNS}{run}/reader-{reader}.json")
            found += [Status.from_json(told.text)] if told else []
    return sum_of(found)


class ReadingProgress:
    """What the readers of a run have done, as it was some seconds ago."""

    def __init__(self, store: Store, run: str, readers: int) -> None:
        self._of = store, run, readers
        self._looked, self._read = -math.inf, Status()

    def __call__(self) -> Status:
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = time.monotonic()
            self._read = read_so_far(*self._of)
        return self._read
