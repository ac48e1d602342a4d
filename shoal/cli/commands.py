"""Runs a command, and prints every known failure as one sentence.

Import here only what every command needs, because every command waits for these imports. A command's module must import
slow libraries inside its functions.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType

import click
from shoal_local_aws.emulator_error import EmulatorError

from common.errors import OutputError, ReportedError, UsageError, disk_advice
from infra.topology_error import TopologyError
from shoal.cli.command import Commands
from shoal.cli.output import print_error
from shoal.interrupt import ENDING_SIGNALS

COMMANDS = {
    "plan": ("shoal.cli.verbs.plan", "show a topology's price, and check that it can be deployed"),
    "deploy": ("shoal.cli.verbs.deploy", "create or update a deployment"),
    "preprocess": ("shoal.cli.verbs.preprocess", "turn raw reviews into a dataset"),
    "train": ("shoal.cli.verbs.train", "train a model on a dataset"),
    "embed": ("shoal.cli.verbs.embed", "learn word embeddings from text"),
    "attach": ("shoal.cli.verbs.attach", "follow a run on a deployment, and copy its results"),
    "stop": ("shoal.cli.verbs.stop", "stop a run on a deployment"),
    "predict": ("shoal.cli.verbs.predict", "label texts with a trained model"),
    "export": ("shoal.cli.verbs.export", "copy a trained model to a folder or S3, optionally with ONNX"),
    "evaluate": ("shoal.cli.verbs.evaluate", "evaluate a classifier or word embeddings"),
    "neighbours": ("shoal.cli.verbs.neighbours", "list the words nearest to given words"),
    "experiment": ("shoal.cli.verbs.experiment", "execute the runs of an experiment, and compare the results"),
    "report": ("shoal.cli.verbs.report", "compare training runs: a table, and an HTML page"),
    "dataset": ("shoal.cli.verbs.dataset", "show the content of a dataset"),
    "status": ("shoal.cli.verbs.status", "show the state of one deployment, or list all deployments"),
    "logs": ("shoal.cli.verbs.logs", "show logs of a deployment, or the output of a run"),
    "ssh": ("shoal.cli.verbs.ssh", "open a shell on a node"),
    "costs": ("shoal.cli.verbs.costs", "show what a deployment has cost"),
    "extend": ("shoal.cli.verbs.extend", "add hours to a deployment's life"),
    "fetch": ("shoal.cli.verbs.fetch", "copy results of training runs to this machine"),
    "destroy": ("shoal.cli.verbs.destroy", "delete a deployment, and verify that nothing is left"),
    "demo": ("shoal.cli.verbs.demo", "run a deployment from start to end on this machine"),
    "embedded": ("shoal.cli.verbs.embedded", "run an AWS emulator on this machine"),
}
"""Module and short help of each command, in the order in which the help lists them."""
_KNOWN = (ReportedError, EmulatorError, TopologyError)
_HELP = """\
Train sentiment models on raw reviews: on this machine, or on an AWS cluster
that shuts itself down.

\b
On AWS:
  shoal plan starter     show the price and check the account; create nothing
  shoal deploy starter   create the cluster, which costs money until deleted
  shoal preprocess --deployment starter --input reviews/*.json.gz
  shoal train --deployment starter --output results/model
  shoal destroy starter  delete everything, and verify that nothing is left

\b
On this machine, free of charge:
  shoal demo             run all of these steps against an emulator
  shoal preprocess --local, shoal train --local, shoal predict
"""
_STATUS = """\
`shoal COMMAND --help` explains a command.

Exit status: 0 success; 1 failure, with a message; 2 wrong use; 130 stopped by
Ctrl-C; 143 stopped by SIGTERM.
"""

shoal = Commands(
    name="shoal",
    rows=COMMANDS,
    help=_HELP,
    epilog=_STATUS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
"""The command `shoal`, a group of all commands."""
click.version_option(package_name="shoal", message="%(prog)s %(version)s")(shoal)


def run(arguments: Sequence[str] | None, interrupt: Callable[[int, FrameType | None], None]) -> int:
    """Run a command and return its exit status. `interrupt` handles the signals that stop the command."""
    typed = sys.argv[1:] if arguments is None else list(arguments)
    for number in ENDING_SIGNALS:
        signal.signal(number, interrupt)
    try:
        status = _parse_and_run(typed)
        sys.stdout.flush()
        return status
    except UsageError as error:
        print_error(str(error))
        return 2
    except OutputError as error:
        if not error.is_unread:
            print_error(str(error))
        # Python flushes standard output at exit. On the broken stream, that would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        explanation = _explanation(error)
        if explanation is None:
            raise
        print_error(*explanation)
        return 1


def _parse_and_run(typed: list[str]) -> int:
    _require_utf8(typed)
    try:
        with shoal.make_context("shoal", list(typed)) as ctx:
            return int(shoal.invoke(ctx))
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        print_error(_with_help(error))
        return error.exit_code


def _require_utf8(typed: list[str]) -> None:
    """Raise UsageError for an argument that is not UTF-8, because records and summaries are UTF-8."""
    for word in map(os.fsencode, typed):
        try:
            word.decode()
        except UnicodeDecodeError:
            raise UsageError(f"the argument {word!r} is not UTF-8; rename that file or folder") from None


def _with_help(error: click.ClickException) -> str:
    sentence = error.format_message()
    if isinstance(error, click.NoSuchOption | click.exceptions.NoSuchCommand) and error.possibilities:
        # Click sorts the similar names by the alphabet; here the nearest is first.
        sentence = f"{error.message} Did you mean {' or '.join(map(repr, error.possibilities))}?"
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "shoal"
    return f"{sentence[:1].lower()}{sentence[1:].rstrip('.')}; see: {where} --help"


def _explanation(error: Exception) -> Sequence[str] | None:
    """Return the lines of a known error's message; None for an unexpected error, which the caller raises again."""
    known = [str(line) for line in error.args] if isinstance(error, _KNOWN) else None
    if isinstance(error, EmulatorError):  # it ends with lines of the emulator's own log
        known = str(error).split("\n")
    # A check such as `Path.is_dir` raises for a folder that the user may not enter, a loop of links, or a long name.
    if isinstance(error, OSError) and error.filename is not None:
        known = [f"cannot use {error.filename}: {error.strerror}; {disk_advice(error)}"]
    elif isinstance(error, RuntimeError) and "Symlink loop" in str(error):
        known = [f"cannot use a path: {error}; check the path"]
    if "botocore" not in sys.modules:  # the command made no AWS request
        return known
    from shoal.aws.loopback import START, is_unreachable
    from shoal.cli.aws_errors import AwsError, sentence

    if known is not None:
        return [*known[:-1], f"{known[-1]}; {START}"] if is_unreachable(error) else known
    return [sentence(error)] if isinstance(error, AwsError) else None
