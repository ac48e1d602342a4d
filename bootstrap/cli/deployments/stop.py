"""`shoal stop`: stops a training on a deployment with a checkpoint, or cancels a preprocessing."""

import click

from bootstrap.cli.command import command
from bootstrap.cli.output import Result
from bootstrap.cli.target import Target, target_options
from bootstrap.progress import Bars


@command(
    help="Stop a run on a deployment from any machine. A training stops with a checkpoint, and its nodes end. "
    "RUN is the run's name (default: the first unfinished training, or else the preprocessing). To continue, run the "
    "original command again, for a training with --resume.",
    epilog="Example: shoal stop starter",
)
@target_options
@click.argument("run", required=False, metavar="[RUN]", help="name of the run")
def run(target: Target, run: str | None) -> Result:
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.lifecycle.runs import find_run

    found = find_run(find_deployment(target.name, target.account), run)
    with Bars() as bars:
        outcome, error = found.stop(bars)
    rows = [
        ("run", f"{found.name}: {outcome}{f', {error}' if error else ''}"),
        *([("its results", found.results)] if found.results else []),
        *([("to continue", found.continued)] if outcome == "stopped" else []),
    ]
    return Result({"run": found.name, "outcome": outcome, "error": error}, [rows])
