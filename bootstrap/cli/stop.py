"""`shoal stop`: a training on a deployment, stopped with a checkpoint, or a preprocessing, cancelled."""

import click

from bootstrap.cli.command import command
from bootstrap.cli.output import Result
from bootstrap.cli.target import Target, target_options
from bootstrap.progress import Bars


@command(
    short_help="stop a training with a checkpoint, or a preprocessing",
    help="Stop a training on a deployment with a checkpoint, from any machine, and end its nodes. RUN is its name "
    "(default: the first training that has not ended, or where there is none the preprocessing). The command that "
    "began a training continues it with --resume; that of a preprocessing does so by itself.",
    epilog="Example: shoal stop starter",
)
@target_options
@click.argument("run", required=False, metavar="[RUN]")
def run(target: Target, run: str | None) -> Result:
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.preprocessing.attaching import stop as stop_jobs
    from bootstrap.training.attaching import is_of_jobs, stop

    deployment = find_deployment(target.name, target.account)
    if is_of_jobs(deployment, run):
        name = stop_jobs(deployment, run)
        return Result({"run": name, "outcome": "stopped"}, [{"run": "{run}: its steps are cancelled"}])
    with Bars() as bars:
        name, outcome, error = stop(deployment, run, bars)
    rows = [
        ("run", f"{name}: {outcome}{f', {error}' if error else ''}"),
        ("its results", f"shoal fetch {target.name} --run {name} --output results"),
        *([("to continue", "the command that began it, with --resume")] if outcome == "stopped" else []),
    ]
    return Result({"run": name, "outcome": outcome, "error": error}, [rows])
