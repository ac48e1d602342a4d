"""`shoal logs`: shows the newest logs of a deployment's steps, nodes and guard, or the output of a run."""

import time

import click

from common.display import join_lines, printable
from common.errors import UsageError
from shoal.cli.command import command, option
from shoal.cli.output import Result, say, wants_json, with_unanswered
from shoal.cli.target import Target, target_options

_PAUSE_SECONDS = 2.0
_ASK_SECONDS = 30.0
"""Interval between two requests to AWS that ask whether the run has ended."""


@command(
    help="Show the newest EMR steps with the reasons of failed steps, the first-boot reports of GPU nodes, and "
    "the guard's last log lines. With --run, show what the processes of a training printed.",
    epilog="Example: shoal logs demo --run demo.20260102T030405-0a1b --rank 0 --follow",
)
@target_options
@option(
    "--run",
    "of_run",
    metavar="RUN",
    help="show only the output of the ranks and readers of a training run, each line prefixed with its node and rank",
)
@option(
    "--rank",
    type=click.IntRange(min=0),
    metavar="N",
    help="with --run: show only the output of rank N; ranks are numbered from 0",
)
@option("--follow", is_flag=True, help="with --run: print new lines as they appear, until the run ends or Ctrl-C")
def run(
    target: Target,
    of_run: str | None,
    rank: int | None,
    follow: bool,
) -> Result | int:
    from shoal.deployments import logs, status

    if of_run:
        if wants_json():
            raise UsageError("--run prints a run's output unchanged; leave out --json")
        _print_run(target, of_run, rank, follow=follow)
        return 0
    if follow or rank is not None:
        raise UsageError(f"{'--follow' if follow else '--rank'} requires --run")
    account = target.account
    now = status.read_status(target.name, account, with_guard=False)
    guard = logs.guard(account, now)
    excerpts = [*logs.steps(account, now), *logs.nodes(account, now), *([guard] if guard else [])]
    text = join_lines(
        line for each in excerpts for line in (f"{each.who}: {each.state}", *(f"    {line}" for line in each.lines))
    )
    unanswered = [f"the log of the {each.who}" for each in excerpts if each.is_unknown]
    return with_unanswered(
        Result({"excerpts": [vars(each) for each in excerpts]}, [text or "no logs yet"]), account, unanswered
    )


def _print_run(target: Target, run: str, rank: int | None, *, follow: bool) -> None:
    from shoal.deployments.fetch import find_data_bucket
    from shoal.deployments.logs import ProgramLogs

    logs = ProgramLogs(target.account.client("s3"), find_data_bucket(target.name, target.account), run)
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
    from infra import topology
    from shoal.aws import stacks
    from shoal.backends.attaching import current_trainings

    if stacks.describe(target.account.client("cloudformation"), topology.stack_name(target.name)) is None:
        return False
    wanted = current_trainings(target.deployment)
    return any(each.name == run and not each.state.has_ended for each in wanted)
