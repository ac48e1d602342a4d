"""`shoal logs`: shows the newest logs of a deployment's steps, nodes and guard, or the output of a run."""

import time
from typing import TYPE_CHECKING

from bootstrap.cli.command import command, option
from bootstrap.cli.output import Result, say, wants_json, with_unanswered
from bootstrap.cli.target import Target, target_options
from common.display import join_lines, printable
from common.errors import UsageError

if TYPE_CHECKING:
    from bootstrap.lifecycle.logs import LogExcerpt

_PAUSE_SECONDS = 2.0
_ASK_SECONDS = 30.0
"""Interval between two requests to AWS that ask whether the run has ended."""


@command(
    help="Show the newest EMR steps with the reasons of failed steps, the first-boot reports of GPU nodes, and "
    "the guard's last "
    "log lines. With --run, show what the processes of a training printed.",
    epilog="""\
\b
Examples:
  shoal logs demo --node i-0123456789abcdef0 --tail 20
  shoal logs demo --run demo.20260102T030405-0a1b --rank 0 --follow
""",
)
@target_options
@option("--node", metavar="ID", help="show only the node with this instance id")
@option(
    "--step", type=int, metavar="N", help="show only the newest N steps (default: 5 steps, and also nodes and guard)"
)
@option("--tail", type=int, metavar="N", help="number of lines to show from the end of each log (default: 10)")
@option(
    "--run",
    "of_run",
    metavar="RUN",
    help="show only the output of the ranks and readers of a training run, each line prefixed with its node and rank",
)
@option("--rank", type=int, metavar="N", help="with --run: show only the output of rank N; ranks are numbered from 0")
@option("--follow", is_flag=True, help="with --run: print new lines as they appear, until the run ends or Ctrl-C")
def run(
    target: Target,
    node: str | None,
    step: int | None,
    tail: int | None,
    of_run: str | None,
    rank: int | None,
    follow: bool,
) -> Result | int:
    from bootstrap.lifecycle import logs, status

    for flag, value, least in (("--step", step, 1), ("--tail", tail, 1), ("--rank", rank, 0)):
        if value is not None and value < least:
            raise UsageError(f"{flag} is {value}, but must be at least {least}")
    if of_run:
        if node or step or tail or wants_json():
            raise UsageError("--run prints a run's output unchanged; leave out --node, --step, --tail and --json")
        _print_run(target, of_run, rank, follow=follow)
        return 0
    if follow or rank is not None:
        raise UsageError(f"{'--follow' if follow else '--rank'} requires --run")
    if node and step:
        raise UsageError("--node and --step exclude each other; give one of them")
    name, account, tail = target.name, target.account, tail or 10
    now = status.read_status(name, account, with_guard=False)
    excerpts: list[LogExcerpt] = []
    if not node:
        excerpts += logs.steps(account, now, newest=step or 5, tail=tail)
    if not step:
        excerpts += logs.nodes(account, now, tail=tail, only=node)
    if not (node or step) and (guard := logs.guard(account, now, tail=tail)):
        excerpts.append(guard)
    text = join_lines(
        line for each in excerpts for line in (f"{each.who}: {each.state}", *(f"    {line}" for line in each.lines))
    )
    unanswered = [f"the log of the {each.who}" for each in excerpts if each.is_unknown]
    return with_unanswered(
        Result({"excerpts": [vars(each) for each in excerpts]}, [text or "no logs yet"]), account, unanswered
    )


def _print_run(target: Target, run: str, rank: int | None, *, follow: bool) -> None:
    from bootstrap.lifecycle.fetch import find_data_bucket
    from bootstrap.lifecycle.logs import RunLogs

    logs = RunLogs(target.account.client("s3"), find_data_bucket(target.name, target.account), run)
    ended = printed = False
    asked = -_ASK_SECONDS
    while not ended:
        if time.monotonic() - asked >= _ASK_SECONDS:
            ended, asked = not (follow and _is_active(target, run)), time.monotonic()
        for line in logs.more(rank):
            printed = True
            print(printable(line), flush=follow)  # noqa: T201
        if not ended:
            time.sleep(_PAUSE_SECONDS)
    if not printed:
        who = "the ranks" if rank is None else f"rank {rank}"
        say(f"{who} of {run} printed nothing")


def _is_active(target: Target, run: str) -> bool:
    """Return whether a run might still print: its deployment exists, and no command has collected its results.

    Raises ShoalError if the deployment's current training runs are unknown.
    """
    from bootstrap.aws import stacks
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.training.attaching import current_trainings
    from infra import topology

    if stacks.describe(target.account.client("cloudformation"), topology.stack_name(target.name)) is None:
        return False
    wanted = current_trainings(find_deployment(target.name, target.account))
    return any(each.name == run and not each.has_ended for each in wanted)
