"""`python -m trainer`: one rank of a training run. Exit status 0, 1 for a run that failed, 2 for wrong use.

The first rank alone says what went wrong; an error on any rank is every rank's (ranks.py). What keeps a machine from
joining the others is said by the first rank of that machine. A run that was asked to stop has ended well: it exits 0,
with `"stopped": true` in its summary.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from corpus.errors import DataError
from trainer.config import parse
from trainer.errors import RankError, TrainingError


class _SaidError(Exception):
    """The user knows what went wrong, or hears it from another rank."""


@contextmanager
def _said(*, here: bool) -> Iterator[None]:
    """Say an error of this block at once, if it is for this rank to say: what the error passes next may hang."""
    try:
        yield
    except (TrainingError, DataError) as error:
        own = isinstance(error, RankError)
        if here or own:
            which = f"rank {os.environ.get('RANK', '0')}: " if own else ""
            sys.stderr.write(f"trainer: {which}{error}\n")
            sys.stderr.flush()
        raise _SaidError from error


def main() -> int:
    config = parse()
    from trainer.loop import train
    from trainer.ranks import join

    first_here = os.environ.get("LOCAL_RANK", "0") == "0"
    try:
        with _said(here=first_here), join(config.threads) as ranks, _said(here=ranks.first):
            train(config, ranks)
    except _SaidError:
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    if status:
        # The ordinary way out waits for threads and queues of a process group that may be broken.
        os._exit(status)
