"""`shoal`: reads the command line, runs the verb, and turns every known failure into one sentence.

Exit status: 0 done; 1 failed, with a reason; 2 wrong use; 130 interrupted. The easy mistake is to import a verb's
libraries here: `shoal --help` would take seconds.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

import psutil
from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.cli import (
    catalog,
    costs,
    demo,
    deploy,
    destroy,
    embedded,
    extend,
    fetch,
    logs,
    plan,
    predict,
    preprocess,
    status,
    train,
)
from bootstrap.errors import ShoalError, UsageError
from bootstrap.fleet import ENDING_SIGNALS
from corpus.errors import DataError
from embedded.errors import EmulatorError
from infra.errors import TopologyError
from jobs.errors import JobError
from trainer.errors import TrainingError

_VERBS = (
    plan,
    deploy,
    preprocess,
    train,
    predict,
    status,
    logs,
    costs,
    extend,
    fetch,
    destroy,
    demo,
    catalog,
    embedded,
)
_KNOWN = (DataError, EmulatorError, JobError, ShoalError, TopologyError, TrainingError)
_INTERRUPTED = 130
_PROCESS = os.getpid()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line's verb; returns the exit status."""
    args = _parser().parse_args(arguments)
    for number in ENDING_SIGNALS:
        signal.signal(number, _interrupt)
    try:
        return int(args.run(args))
    except UsageError as error:
        _say(error)
        return 2
    except _KNOWN as error:
        _say(error)
        return 1
    except (BotoCoreError, ClientError, Boto3Error) as error:
        _say(f"AWS could not do what was asked: {error}; are credentials, region and permissions right?")
        return 1
    except KeyboardInterrupt:
        _say("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; what Python would still flush must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        _end_children()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="shoal",
        description="A pile of reviews to a trained sentiment model, on a cluster that switches itself off.",
        epilog="On this machine: `shoal demo` shows a deployment's whole life; `shoal preprocess --local` and "
        "`shoal train --local` do the two jobs. On AWS: `cdk deploy -c topology=NAME` first, then the same with "
        "--deployment NAME.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in _VERBS:
        added = verb.add(verbs)
        added.set_defaults(run=verb.run)
    return parser


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    if os.getpid() != _PROCESS:  # a process forked by a library, which inherited this handler
        os._exit(_INTERRUPTED)
    raise KeyboardInterrupt


def _say(text: object) -> None:
    print(f"shoal: {text}", file=sys.stderr)  # noqa: T201


def _end_children() -> None:
    """No verb leaves a process behind, however it ended."""
    children = psutil.Process().children(recursive=True)
    for child in children:
        child.terminate()
    for child in psutil.wait_procs(children, timeout=10)[1]:
        child.kill()


if __name__ == "__main__":
    sys.exit(main())
