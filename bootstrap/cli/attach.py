"""`shoal attach`: what another command has begun on a deployment, followed to its results."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.output import Result
from bootstrap.cli.output_folder import sole_writer
from bootstrap.cli.target import Target, target_options
from bootstrap.cli.training_result import training_result
from bootstrap.progress import Bars

if TYPE_CHECKING:
    from bootstrap.aws.deployment import Deployment


@command(
    short_help="follow a training or preprocessing that goes on by itself",
    help="Follow a training on a deployment from any machine: show its progress, and copy its results when it ends. "
    "RUN is its name (default: the first training that has not ended, or where there is none the preprocessing). "
    "Ctrl-C ends this command alone, and the run goes on; shoal stop stops it.",
    epilog="Example: shoal attach starter --output results/model",
)
@target_options
@click.argument("run", required=False, metavar="[RUN]")
@option(
    "--output", type=click.Path(path_type=Path), metavar="DIR", help="folder for its results (default: results/RUN)"
)
def run(target: Target, run: str | None, output: Path | None) -> Result:
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.training.attaching import attach, chosen, is_of_jobs

    deployment = find_deployment(target.name, target.account)
    if is_of_jobs(deployment, run):
        return _attach_to_jobs(deployment, run)
    wanted = chosen(deployment, run)
    output = output or Path("results") / wanted.run
    with sole_writer(output), Bars(unit="row") as bars:
        result, config = attach(deployment, wanted, output, bars)
    return training_result(result, config.output)


def _attach_to_jobs(deployment: "Deployment", run: str | None) -> Result:
    from bootstrap.cli.preprocess import result_of
    from bootstrap.preprocessing.attaching import attach
    from bootstrap.training.sources.dataset import opened_dataset

    with Bars() as bars:
        made = attach(deployment, run, bars)
    with opened_dataset(made.dataset) as dataset:
        settings = dataset.settings
    return result_of(made, settings)
