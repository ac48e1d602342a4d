"""`shoal attach`: follows a run on a deployment that another command started, and copies its results."""

from pathlib import Path

import click

from shoal.cli.command import command, option
from shoal.cli.output import Result
from shoal.cli.output_folder import sole_writer
from shoal.cli.target import Target, target_options
from shoal.cli.training_result import training_result
from shoal.progress import Bars


@command(
    help="Follow a run on a deployment from any machine: show its progress, and copy its results when it ends. "
    "RUN is the run's name (default: the first unfinished training run or, without one, the preprocessing). "
    "Ctrl-C stops only this command; `shoal stop` stops the run.",
    epilog="Example: shoal attach starter --output results/model",
)
@target_options
@click.argument("run", required=False, metavar="[RUN]", help="name of the run")
@option(
    "--output", type=click.Path(path_type=Path), metavar="DIR", help="folder for the results (default: results/RUN)"
)
def run(target: Target, run: str | None, output: Path | None) -> Result:
    from shoal.backends.attaching import StartedTraining
    from shoal.cli.verbs.preprocess import result_of
    from shoal.deployments.runs import find_run
    from shoal.runs.sources.dataset import opened_dataset

    selected_run = find_run(target.deployment, run)
    if isinstance(selected_run, StartedTraining):
        output = output or Path("results") / selected_run.name
        with sole_writer(output), Bars(unit="row"):
            return training_result(selected_run.follow(output), output)
    with Bars():
        merged = selected_run.follow()
    with opened_dataset(merged.dataset) as dataset:
        return result_of(merged, dataset.settings)
