"""All verbs: reads the command line, runs the one that is asked for, and turns every known failure into one sentence.

The easy mistake is to import what another verb needs, or what a verb needs only while it
runs: every command would wait for it.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from importlib import import_module
from importlib.metadata import version
from types import FrameType

import psutil

from bootstrap.cli.help import Parser
from bootstrap.cli.output import say
from bootstrap.errors import ShoalError, UsageError
from bootstrap.interrupt import ENDING_SIGNALS
from corpus.errors import DataError
from embedded.errors import EmulatorError
from infra.errors import TopologyError
from jobs.errors import JobError
from trainer.errors import TrainingError

VERBS = (
    "plan",
    "deploy",
    "preprocess",
    "train",
    "predict",
    "dataset",
    "status",
    "logs",
    "costs",
    "extend",
    "fetch",
    "destroy",
    "demo",
    "catalog",
    "embedded",
)
"""A module each, in the order of the help."""
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
    args = _parser(typed).parse_args(typed)
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
        say(f"shoal: {error}{_hint(error)}")
        return 1
    except BrokenPipeError:
        # Whoever read our output has seen enough; what Python would still flush must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        told = _of_aws(error)
        if told is None:
            raise
        say(f"shoal: {told}")
        return 1
    finally:
        _end_children(before)


def _parser(typed: Sequence[str]) -> argparse.ArgumentParser:
    """Of the verb that is asked for; of all verbs where that is not clear."""
    parser = Parser(
        prog="shoal",
        description="A pile of reviews to a trained sentiment model, on a cluster that switches itself off.",
        epilog=_WAY,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('shoal')}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name in [name for name in VERBS if [name] == typed[:1]] or VERBS:
        verb = import_module(f"bootstrap.cli.{name}")
        verb.add(verbs).set_defaults(run=verb.run)
    return parser


def _asked_aws() -> bool:
    """Whether an error may be one of AWS: what such errors mean is not worth loading otherwise."""
    return "botocore" in sys.modules


def _hint(error: Exception) -> str:
    """What else is to be said where the emulator is not there."""
    if not _asked_aws():
        return ""
    from bootstrap.aws.loopback import START, is_gone

    return f"; {START}" if is_gone(error) else ""


def _of_aws(error: Exception) -> str | None:
    """The sentence for an error of AWS; None for any other one."""
    if not _asked_aws():
        return None
    from bootstrap.cli.aws_errors import AwsError, sentence

    return sentence(error) if isinstance(error, AwsError) else None


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def _end_children(but: AbstractSet[psutil.Process]) -> None:
    """No verb leaves a process behind, however it ended; those that were there before it are not its own."""
    children = _children() - but
    for child in children:
        child.terminate()
    for child in psutil.wait_procs(children, timeout=10)[1]:
        child.kill()
