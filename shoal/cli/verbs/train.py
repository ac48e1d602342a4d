"""`shoal train`: trains a model on a dataset or on texts."""

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.errors import DataError, UsageError
from common.options import flag
from corpus.dataset_settings import DEFAULT
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.sources import Inputs, ReadingOptions
from jobs.input_options import CLASSES, FILES, READING, TEST_FILES
from shoal.cli.command import command, described_options, option, typed_options
from shoal.cli.input_options import FORMAT, INPUT, NOTES, require_s3
from shoal.cli.output import Result
from shoal.cli.target import Target, hosts_option, launch_options, local_ranks_option, where_options
from shoal.cli.training_run import backend_of, config_of, run_training
from trainer.config import options_for

if TYPE_CHECKING:
    from shoal.runs.sources.source import DataSource


_FLAG = re.compile("`[^`]*`|(--[a-z]+(?:-[a-z]+)*)")
"""Matches an option, or a whole command in backticks. The options of such a command are left out."""
_FIELDS = tuple(
    replace(each, advanced=True) for each in READING if each.name in ("text_field", "rating_field", "label_field")
)
_READING_NAMES = (CLASSES.name, *(each.name for each in _FIELDS))


@command(
    help="Train a sentiment model by data-parallel SGD. Each global batch is split over the ranks in proportion to "
    "their measured speed. Ctrl-C stops with a checkpoint (exit status 130; SIGTERM: 143), and --resume continues. "
    "With --deployment, the GPU nodes run, and cost money, until the training has finished or is stopped. "
    "The training continues if the terminal is closed; to follow it again, run the same command or `shoal attach`.",
    epilog="""\
\b
Examples:
  shoal train --deployment starter --output results/model
  shoal train --deployment starter --output results/model --detach
  shoal train --hosts hosts.txt --data results/data/dataset.h5 \\
      --output results/model
      on your own machines; see docs/how-to/train-on-your-hosts.md
  shoal train --local --nodes 2 --slow 1:2.0 --data results/data/dataset.h5 \\
      --output results/model
  shoal train --local --model fasttext --input train.csv \\
      --test-input test.csv --output results/model
      on whole texts, without preprocessing; a second run reuses the texts
      that the first run read
  shoal train --deployment fasttext --model fasttext \\
      --input s3://reviews/yelp --output results/model
      on texts that the nodes read from S3, within the topology's inputs
""",
    notes={
        INPUT: f"Instead of --data: texts to learn from. Training uses all their words. {NOTES[INPUT]}",
        FORMAT: "Shoal detects the format from the first lines of a file; `shoal preprocess` has more options for it.",
    },
)
@where_options
@hosts_option
@launch_options
@local_ranks_option
@option(
    "--data",
    group="Data",
    type=click.Path(),
    metavar="DATASET",
    help="dataset made by `shoal preprocess`: a file or, with --deployment, also s3://... (default with "
    "--deployment: the deployment's newest dataset)",
)
@described_options((FILES, TEST_FILES[0], CLASSES, *_FIELDS))
@described_options(options_for("classes"), but=("data",))
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    target: Target | Path | None,
    launch: dict[str, Any],
    nodes: int | None,
    data: str | None,
    **options: Any,
) -> Result:
    source = _source(typed_options(ctx), options, data, local=target is None)
    config = config_of(ctx)
    backend = backend_of(target, nodes, managed=launch.pop("managed", False))
    try:
        return run_training(ctx, source, config, backend, launch)
    except DataError as error:
        named = [each for each in _FLAG.findall(str(error)) if each and each not in {flag(name) for name in ctx.params}]
        if not named:
            raise
        advice = f"{named[0]} is an option of `shoal preprocess`: preprocess the texts, and train with --data"
        raise DataError(f"{error}. {advice}") from error


def _source(typed: dict[str, Any], options: dict[str, Any], data: str | None, *, local: bool) -> "DataSource":
    if not options["input"] and not options["test_input"]:
        if needless := [name for name in typed if name in _READING_NAMES]:
            raise UsageError(f"{flag(needless[0])} requires --input, because the texts of a dataset were already read")
        if local and data is None:
            raise UsageError(
                "--local requires --data FILE, a dataset made by `shoal preprocess`, or --input FILE... with texts"
            )
        require_s3(data)
        from shoal.runs.sources.dataset import DatasetSource

        return DatasetSource(data)
    if data is not None:
        raise UsageError("--data and --input exclude each other; give a dataset or texts")
    try:
        inputs = Inputs(
            files=tuple(options["input"]),
            test=tuple(options["test_input"]),
            options=ReadingOptions(
                text=tuple(options["text_field"]),
                rating=options["rating_field"],
                label=options["label_field"],
                classes=tuple(options["classes"]),
            ),
        )
    except DataError as error:
        raise UsageError(str(error)) from error
    require_s3(*inputs.addresses)
    from shoal.runs.sources.texts import TextsSource

    return TextsSource(inputs=inputs, settings=DEFAULT, max_malformed=DEFAULT_MAX_MALFORMED)
