"""All verbs: reads the command line, runs the one that is asked for, and turns every known failure into one sentence.

The easy mistake is to import a verb's libraries here: `shoal --help` would take seconds.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from importlib.metadata import version
from types import FrameType

import psutil
from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.cli import (
    catalog,
    costs,
    dataset,
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
from bootstrap.cli.aws_errors import sentence
from bootstrap.cli.help import Parser
from bootstrap.cli.output import say
from bootstrap.errors import ShoalError, UsageError
from bootstrap.fleet import ENDING_SIGNALS
from bootstrap.loopback import START, is_gone
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
    dataset,
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
_WAY = """\
on AWS:
  shoal plan starter          the price, and what is in the way; creates nothing
  shoal deploy starter        the cluster, which costs money, and ends by itself
  shoal preprocess --deployment starter --input reviews/*.json.gz
  shoal train --deployment starter --output results/model
  shoal destroy starter       all of it away, with proof
on this machine, for nothing:
  shoal demo                  all of that against an emulator
  shoal preprocess --local, shoal train --local, shoal predict

`shoal VERB --help` explains a verb.
Exit status: 0 done; 1 failed, with a reason; 2 wrong use; 130 interrupted by
Ctrl-C, 143 by SIGTERM (a training that was stopped with a checkpoint, too).
"""


def run(arguments: Sequence[str] | None, interrupt: Callable[[int, FrameType | None], None]) -> int:
    """Run the command line's verb, with `interrupt` for all signals that end it; returns the exit status."""
    typed = sys.argv[1:] if arguments is None else list(arguments)
    args = _parser().parse_args(typed)
    args.typed = typed
    before = _children()
    for number in ENDING_SIGNALS:
        signal.signal(number, interrupt)
    try:
        return int(args.run(args))
    except UsageError as error:
        say(f"shoal: {error}")
        return 2
    except _KNOWN as error:
        say(f"shoal: {error}" + (f"; {START}" if is_gone(error) else ""))
        return 1
    except (BotoCoreError, ClientError, Boto3Error) as error:
        say(f"shoal: {sentence(error)}")
        return 1
    except BrokenPipeError:
        # Whoever read our output has seen enough; what Python would still flush must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        _end_children(before)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="shoal",
        description="A pile of reviews to a trained sentiment model, on a cluster that switches itself off.",
        epilog=_WAY,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('shoal')}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in _VERBS:
        added = verb.add(verbs)
        added.set_defaults(run=verb.run)
    return parser


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def _end_children(but: AbstractSet[psutil.Process]) -> None:
    """No verb leaves a process behind, however it ended; those that were there before it are not its own."""
    children = _children() - but
    for child in children:
        child.terminate()
    for child in psutil.wait_procs(children, timeout=10)[1]:
        child.kill()
