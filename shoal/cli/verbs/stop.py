"""`shoal stop`: stops a training run on a deployment with a checkpoint, or cancels a preprocessing run."""

import click

from shoal.cli.command import command
from shoal.cli.output import Result
from shoal.cli.target import Target, target_options
from shoal.progress import Bars


@command(
    help="Stop a run on a deployment from any machine. A training run stops with a checkpoint, and its nodes "
    "are terminated. RUN is the run's name (default: the first unfinished training run or, without one, the "
    "preprocessing). To continue, run the original command again; for a training run, add --resume.",
    epilog="Example: shoal stop starter",
)
@target_options
@click.argument("run", required=False, metavar="[RUN]", help="name of the run")
def run(target: Target, run: str | None) -> Result:
    from shoal.deployments.runs import find_run

    selected_run = find_run(target.deployment, run)
    with Bars():
        outcome, error = selected_run.stop()
    rows = [
        ("run", f"{selected_run.name}: {outcome}{f', {error}' if error else ''}"),
        *([("its results", selected_run.results)] if selected_run.results else []),
        *([("to continue", selected_run.continued)] if outcome == "stopped" else []),
    ]
    return Result({"run": selected_run.name, "outcome": outcome, "error": error}, [rows])
