"""`python -m trainer`: one rank of a training run. Exit status 0, 1 for a run that failed, 2 for wrong use.

The first rank alone says what went wrong; an error on any rank is every rank's (ranks.py). What keeps a machine from
joining the others is said by the first rank of that machine; what befell one rank alone by that rank, with a traceback
where it is no error of ours. Each rank leaves its failure to the launcher, too (failures.py). A run that was asked to
stop has ended well: it exits 0, with `"stopped": true` in its summary.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from trainer.command_line import parse_arguments
from trainer.distributed import failures
from trainer.distributed.failures import Kind
from trainer.errors import RankError


class _SaidError(Exception):
    """The user knows what went wrong, or hears it from another rank."""


@contextmanager
def _said(*, here: bool) -> Iterator[None]:
    """Say an error of this block at once, if it is for this rank to say: what the error passes next may hang."""
    try:
        yield
    except _SaidError:
        raise
    except Exception as error:
        rank = int(os.environ.get("RANK", "0"))
        failure = failures.describe(error, rank)
        failures.tell(failure, rank)
        if failure.kind is Kind.CAUSE:
            traceback.print_exc()
        if here or failure.kind is Kind.CAUSE or isinstance(error, RankError):
            sys.stderr.write(f"trainer: {failure}\n")
            sys.stderr.flush()
        raise _SaidError from error


def main() -> int:
    config = parse_arguments()
    from trainer.distributed.ranks import join
    from trainer.loop import train

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
