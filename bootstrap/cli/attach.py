"""`shoal attach`: a training on a deployment that another command has begun, followed to its results."""

from pathlib import Path

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.output import json_option, summary
from bootstrap.cli.target import Target, target_options
from bootstrap.cli.training_run import exit_status
from bootstrap.progress import Bars


@command(
    short_help="follow a training that goes on by itself",
    help="Follow a training on a deployment from any machine: show its progress, and copy its results when it ends. "
    "RUN is its name (default: the first that has not ended). Ctrl-C ends this command alone, and the training goes "
    "on; shoal stop stops it.",
    epilog="Example: shoal attach starter --output results/model",
)
@target_options
@click.argument("run", required=False, metavar="[RUN]")
@option(
    "--output", type=click.Path(path_type=Path), metavar="DIR", help="folder for its results (default: results/RUN)"
)
@json_option
def run(target: Target, run: str | None, output: Path | None, as_json: bool) -> int:
    """Run `shoal attach`."""
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.cli import embed, train
    from bootstrap.training.attaching import attach
    from trainer.registry import MODELS

    with Bars(unit="row") as bars:
        result, config = attach(find_deployment(target.name, target.account), run, output, bars)
    rows = embed.word_rows if MODELS[config.model].learns_words else train.rows
    summary(result, rows(result, config.output), as_json=as_json)
    return exit_status(result)
