"""`shoal preprocess`: raw reviews to dataset.h5 and counts.json."""

import os
from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import command, declared, option
from bootstrap.cli.made import result, warnings
from bootstrap.cli.named import Target, where_options
from bootstrap.cli.output import json_option, print_warning, say, show
from bootstrap.cli.reading import NOTES, input_options, read_inputs, reading_options, require_s3, whole_command
from bootstrap.errors import UsageError
from bootstrap.progress import Bars
from corpus.errors import DataError
from jobs.choose import add_limit_options
from jobs.settings import add_settings, read_settings

if TYPE_CHECKING:
    from bootstrap.cli.preview import Preview
    from corpus.reading.sources import Inputs
    from corpus.settings import Settings
    from jobs.merge import MergeResult

_RUNNERS = {"local": ("auto", "local", "inline"), "deployment": ("streaming", "spark")}
# The defaults are the first ones.
_DESCRIPTION = """\
Turn raw reviews into a dataset: duplicates removed, words as numbers, split
into train and test.

Reads JSON lines, CSV, TSV, Parquet, fastText and plain text. With --deployment
its EMR cluster does it, which is paid for from its deployment until it has been
idle for a while.
"""
_EXAMPLES = """\
\b
Examples:
  shoal preprocess --local --input reviews/*.json.gz --output results/data
      files as SNAP publishes them (JSON lines with reviewText and overall, or
      text and rating)
  shoal preprocess --local --input reviews --output results/data --dry-run
      what is in the folder and what it would take; writes nothing
  shoal preprocess --local --input train.csv --test-input test.csv \\
      --output results/data
      a test set of its own; columns label, title and text, with or without a
      header
  shoal preprocess --local --input imdb.jsonl.gz --label-field label \\
      --text-field text --output results/data
      fields of other names; labels 0/1, 1/2, neg/pos and negative/positive
      are understood, others need --positive-label
  shoal preprocess --local --input polarity.dat --separator '$LABEL$' \\
      --output results/data
      any text between the columns: here the text, then the label
  shoal preprocess --local --input tens.csv --rating-range 1 10 \\
      --positive-from 7 --output results/data
      ratings on another scale; --half-stars reads 3.5, --rating-fraction 4/5
  shoal preprocess --local --input pile --exclude '*.png' old \\
      --output results/data
      a folder without some of its files and folders
  shoal preprocess --local --positive-input pos.txt --negative-input neg.txt \\
      --output results/data
      plain texts, a line each, by their class
  shoal preprocess --deployment starter \\
      --input s3://my-bucket/ 'more/*.parquet'
      on the EMR cluster of a deployment
"""


@dataclass(frozen=True)
class _Order:
    """What was asked for."""

    target: Target | None
    inputs: "Inputs"
    settings: "Settings"
    output: str | None
    runner: str
    max_malformed: float
    allow_damaged: bool


@command(
    short_help="turn raw reviews into a dataset",
    help=_DESCRIPTION,
    epilog=_EXAMPLES,
    notes=NOTES,
)
@where_options
@input_options
@reading_options
@option("--output", metavar="DIR_OR_S3", help="folder, or s3://..., for dataset.h5 and counts.json (with --local)")
@option(
    "--runner",
    type=click.Choice(("auto", "local", "inline", "streaming", "spark")),
    help="with --local: local (a process a core), inline (one process), or auto (the default: local but for little "
    "input); with --deployment: streaming (the default) or spark",
)
@option("--dry-run", is_flag=True, help="show what is understood and estimated; write nothing")
@declared(add_limit_options)
@declared(lambda parser: add_settings(parser.add_argument_group("Settings of the dataset").add_argument))
@json_option
@click.pass_obj
def run(
    typed: list[str],
    /,
    *,
    target: Target | None,
    output: str | None,
    runner: str | None,
    dry_run: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Do it."""
    try:
        settings = read_settings(Namespace(**given))
        inputs = read_inputs(
            given, settings.rating_range, settings.rating_steps, rating_fraction=settings.rating_fraction
        )
    except DataError as error:
        raise UsageError(str(error)) from error
    order = _Order(
        target=target,
        inputs=inputs,
        settings=settings,
        output=output,
        runner=_runner(target, output, runner, dry_run=dry_run),
        max_malformed=given["max_malformed"],
        allow_damaged=given["allow_damaged"],
    )
    require_s3(*inputs.files, *inputs.test, *inputs.positive, *inputs.negative, output)
    with whole_command(typed):
        if dry_run:
            _preview(order, as_json=as_json)
            return 0
        made = _here(order) if target is None else _there(order, target)
    noticed = warnings(made, settings)
    said = {"dataset": made.dataset, "digest": made.digest, **made.counts, "malformed_lines": made.malformed}
    show({**said, "damaged": made.damaged, "warnings": noticed}, result(made), as_json=as_json)
    if not as_json:
        for each in noticed:
            print_warning(each)
    return 0


def _runner(target: Target | None, output: str | None, runner: str | None, *, dry_run: bool) -> str:
    """What runs the jobs. Raises UsageError for what does not go with --local, or with --deployment."""
    if target is None and output is None and not dry_run:
        raise UsageError("--local needs --output, the folder for dataset.h5 and counts.json")
    if target is not None and output is not None:
        raise UsageError("--output goes with --local; a deployment keeps its datasets in its data bucket")
    where = "local" if target is None else "deployment"
    if runner not in (None, *_RUNNERS[where]):
        raise UsageError(f"--runner {runner} does not go with --{where}; choose {' or '.join(_RUNNERS[where])}")
    return runner or _RUNNERS[where][0]


def _here(order: _Order) -> "MergeResult":
    from jobs.pipeline import preprocess_locally

    assert order.output is not None
    with Bars() as bars:
        return preprocess_locally(
            order.inputs,
            order.output,
            settings=order.settings,
            runner=order.runner,
            max_malformed=order.max_malformed,
            allow_damaged=order.allow_damaged,
            progress=bars,
        )


def _there(order: _Order, target: Target) -> "MergeResult":
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.preprocessing.preprocess import preprocess

    with Bars() as bars:
        return preprocess(
            find_deployment(target.name, target.account),
            order.inputs,
            settings=order.settings,
            max_malformed=order.max_malformed,
            allow_damaged=order.allow_damaged,
            runner=order.runner,
            bars=bars,
            say=say,
        )


def _preview(order: _Order, *, as_json: bool) -> None:
    """Show what would be done."""
    from bootstrap.cli.preview import Preview, content, text
    from corpus.reading.inputs.understanding import understand_inputs
    from corpus.reading.s3 import is_s3
    from corpus.reading.storage import join
    from jobs.preparation import estimate_work
    from jobs.settings import read_stopwords

    inputs, settings, output = order.inputs, order.settings, order.output
    read_stopwords(settings.stopwords)
    uploads_to = None
    if order.target is None:
        cores = len(os.sched_getaffinity(0)) if order.runner != "inline" else 1
        # Results on S3 lie in a folder named by what they are, so that none replaces another.
        home = join(output, "DIGEST") if output and is_s3(output) else output
    else:
        from bootstrap.aws.deployment import find_deployment
        from bootstrap.preprocessing.cluster import EmrCluster
        from bootstrap.preprocessing.preprocess import RAW_PREFIX
        from infra import topology

        deployment = find_deployment(order.target.name, order.target.account)
        for address in filter(is_s3, (*inputs.files, *inputs.test, *inputs.positive, *inputs.negative)):
            deployment.own(address)
        cores = EmrCluster(deployment).workers().vcpus
        home = f"s3://{deployment.output(topology.OUTPUT_DATA_BUCKET)}/{topology.DATASETS_PREFIX}DIGEST"
        uploads_to = f"s3://{deployment.output(topology.OUTPUT_RAW_BUCKET)}/{RAW_PREFIX}"
    understanding = understand_inputs(inputs, leave_out=output)
    preview = Preview(
        understanding=understanding,
        settings=understanding.settings(settings),
        estimated=estimate_work(understanding, cores),
        cores=cores,
        output=tuple(join(home, name) for name in ("dataset.h5", "counts.json")) if home else (),
        uploads_to=uploads_to,
    )
    show(content(preview), text(preview), as_json=as_json)
    _refuse(order, preview)


def _refuse(order: _Order, preview: "Preview") -> None:
    """End as the run would, by what the sample shows of its input. Raises DataError."""
    from jobs.choose import check_input

    understanding = preview.understanding
    understanding.check_ratings(preview.settings, order.max_malformed)
    try:
        check_input(understanding.sample.tally, order.max_malformed, allow_damaged=order.allow_damaged)
    except DataError as error:
        raise DataError(f"if all of the input is as the sample is, the run will end so: {error}") from error
