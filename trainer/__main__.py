"""`python -m trainer`: one rank of a training run. Exit status: 0, 1 if the run failed, or 2 for wrong usage.

If all ranks have the same error, the first rank reports it (ranks.py). If a machine cannot join the other machines, the
first rank of this machine reports the error. If only one rank has an error, that rank reports it. The report includes a
traceback unless the error has one of the trainer's own types. Each rank also writes its failure for the launcher
(failures.py). A run that was asked to stop is a success: its ranks exit with 0, and its summary contains `"stopped":
true`.
"""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from common.display import printable
from common.starter import end_with_starter
from trainer.command_line import parse_arguments
from trainer.distributed import failures
from trainer.distributed.failures import FailureKind
from trainer.rank_errors import RankError


class _ReportedError(Exception):
    """Signals that this rank has already reported the error, or that another rank reports it."""


@contextmanager
def _report_errors(*, here: bool) -> Iterator[None]:
    """Report an error of this block immediately if this rank must report it.

    Do not report it later, because code that runs while the exception propagates can hang.
    """
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
            sys.stderr.write(f"trainer: {printable(str(failure))}\n")
            sys.stderr.flush()
        raise _ReportedError from error


def main() -> int:
    end_with_starter()
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
        # A normal exit would wait for threads and queues of the process group, which can be broken.
        os._exit(status)
