"""`python -m trainer`: one rank of a training run. Exit status 0, 1 for a run that failed, 2 for wrong use.

The first rank reports an error that all ranks share (ranks.py). The first rank of a machine reports what keeps that
machine from joining the others. An error of one rank alone is reported by that rank, with a traceback if it is not one
of the trainer's own errors. Each rank also leaves its failure to the launcher (failures.py). A run that was asked to
stop has ended well: it exits 0, with `"stopped": true` in its summary.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from common.display import printable_lines
from trainer.command_line import parse_arguments
from trainer.distributed import failures
from trainer.distributed.failures import FailureKind
from trainer.rank_errors import RankError


class _ReportedError(Exception):
    """The error was reported already, or another rank reports it."""


@contextmanager
def _report_errors(*, here: bool) -> Iterator[None]:
    """Report an error of this block at once if this rank has to: code that the error passes later may hang."""
    try:
        yield
    except _ReportedError:
        raise
    except Exception as error:
        rank = int(os.environ.get("RANK", "0"))
        failure = failures.describe(error, rank)
        failures.write_failure(failure, rank)
        if failure.kind is FailureKind.CAUSE:
            traceback.print_exc()
        if here or failure.kind is FailureKind.CAUSE or isinstance(error, RankError):
            sys.stderr.write(f"trainer: {printable_lines(str(failure))}\n")
            sys.stderr.flush()
        raise _ReportedError from error


def main() -> int:
    config = parse_arguments()
    from trainer.distributed.ranks import join_process_group
    from trainer.start import train

    first_here = os.environ.get("LOCAL_RANK", "0") == "0"
    try:
        with (
            _report_errors(here=first_here),
            join_process_group(config.threads) as ranks,
            _report_errors(here=ranks.is_first),
        ):
            train(config, ranks)
    except _ReportedError:
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    if status:
        # The ordinary way out waits for threads and queues of a process group that may be broken.
        os._exit(status)
