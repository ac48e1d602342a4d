"""`shoal preprocess`: raw reviews to dataset.h5 and counts.json."""

from argparse import Namespace
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import command, described_options, option
from bootstrap.cli.dataset_summary import preprocess_summary
from bootstrap.cli.input_options import NOTES, input_options, read_inputs, reading_options, require_s3
from bootstrap.cli.output import Result, print_result, say
from bootstrap.cli.output_folder import sole_writer
from bootstrap.cli.target import Target, where_options
from bootstrap.interrupt import Detached
from bootstrap.preprocessing.dataset_warnings import dataset_warnings
from bootstrap.progress import Bars
from common.errors import DataError, UsageError
from corpus.reading.formats import class_name
from jobs.choose import LIMITS
from jobs.job_settings import PRESET, SETTINGS, read_settings

if TYPE_CHECKING:
    from corpus.dataset_settings import Settings
    from corpus.reading.sources import Inputs
    from jobs.merge import MergeResult

_RUNNERS = {"local": ("auto", "local", "inline"), "deployment": ("streaming", "spark")}
# The defaults are the first ones.
_DESCRIPTION = """\
Turn raw reviews into a dataset: words as numbers, split into train and test,
without duplicates unless they are to be kept.

Reads JSON lines, CSV, TSV, Parquet, fastText and plain text. With --deployment
the deployment's EMR cluster does it, and the bar shows tasks, their rate, the
time left and dollars. The cluster costs money from `shoal deploy` on, until it
has been idle for a while.
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
  shoal preprocess --local --input train.txt --test-input test.txt \\
      --keep-duplicates --output results/data
      lines of __label__NAME and a text, as fastText learns from them: every
      line a row
  shoal preprocess --local --input news.csv --test-input news_test.csv \\
      --classes 1 2 3 4 --output results/data
      more than two classes
  shoal preprocess --local --input imdb.jsonl.gz --label-field label \\
      --text-field text --output results/data
      fields of other names; labels 0/1, 1/2, neg/pos and negative/positive
      are understood, others need --positive-label or --classes
  shoal preprocess --local --input polarity.dat --separator '$LABEL$' \\
      --output results/data
      any text between the columns: here the text, then the label
  shoal preprocess --local --input tens.csv --rating-range 1 10 \\
      --positive-from 7 --output results/data
      ratings on another scale; --rating-step 0.5 reads 3.5, and
      --rating-fraction 4/5
  shoal preprocess --local --input pile --exclude '*.png' old \\
      --output results/data
      a folder without some of its files and folders
  shoal preprocess --local --positive-input pos.txt --negative-input neg.txt \\
      --output results/data
      plain texts, a line each, by their class
  shoal preprocess --deployment starter \\
      --input s3://my-bucket/ 'more/*.parquet'
      on the EMR cluster of a deployment, whose topology names s3://my-bucket
      in its inputs
"""


@dataclass(frozen=True)
class _Request:
    """What the command line asks for."""

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
    advanced=True,
    help="with --local: local (a process a core), inline (one process), or auto (the default: local but for little "
    "input); with --deployment: streaming (the default) or spark",
)
@option("--dry-run", is_flag=True, help="show how the input is read and what it would take; write nothing")
@option("--detach", is_flag=True, help="with --deployment: end as soon as the cluster has its steps")
@option(
    "--force",
    is_flag=True,
    help="with --deployment: make the dataset again where that of the same input and settings is there",
)
@described_options(LIMITS)
@described_options((PRESET, *SETTINGS), group="Settings of the dataset")
def run(
    *,
    target: Target | None,
    output: str | None,
    runner: str | None,
    dry_run: bool,
    detach: bool,
    force: bool,
    **options: Any,
) -> Result | int:
    if (detach or force) and target is None:
        raise UsageError(f"{'--detach' if detach else '--force'} goes with --deployment")
    try:
        settings = read_settings(Namespace(**options), tuple(map(class_name, options["classes"])), options["preset"])
        inputs = read_inputs(
            options, settings.rating_range, settings.rating_steps, rating_fraction=settings.rating_fraction
        )
    except DataError as error:
        raise UsageError(str(error)) from error
    request = _Request(
        target=target,
        inputs=inputs,
        settings=settings,
        output=output,
        runner=_runner(target, output, runner, dry_run=dry_run),
        max_malformed=options["max_malformed"],
        allow_damaged=options["allow_damaged"],
    )
    require_s3(*inputs.addresses, output)
    if dry_run:
        _show_preview(request)
        return 0
    if target is None:
        made = _preprocess_locally(request)
    else:
        try:
            made = _preprocess_on_deployment(request, target, detach=detach, force=force)
        except Detached as left:
            return _detached(target.name, str(left))
    return result_of(made, settings)


def _detached(deployment: str, run: str) -> Result:
    rows = [
        ("run", f"{run} goes on without this command"),
        ("to follow it", f"shoal attach {deployment} {run}"),
        ("to stop it", f"shoal stop {deployment} {run}"),
    ]
    return Result({"detached": True, "deployment": deployment, "run": run}, [rows])


def result_of(made: "MergeResult", settings: "Settings") -> Result:
    """The result on a dataset that was made."""
    warnings = dataset_warnings(made, settings)
    content = {"dataset": made.dataset, "digest": made.digest, **made.counts, "malformed_lines": made.malformed}
    content |= {"damaged": made.damaged, "warnings": warnings}
    return Result(content, [preprocess_summary(made, settings)], warnings=warnings)


def _runner(target: Target | None, output: str | None, runner: str | None, *, dry_run: bool) -> str:
    """The runner of the jobs. Raises UsageError for what does not go with --local, or with --deployment."""
    if target is None and output is None and not dry_run:
        raise UsageError("--local needs --output, the folder for dataset.h5 and counts.json")
    if target is not None and output is not None:
        raise UsageError("--output goes with --local; a deployment keeps its datasets in its data bucket")
    where = "local" if target is None else "deployment"
    if runner not in (None, *_RUNNERS[where]):
        raise UsageError(f"--runner {runner} does not go with --{where}; choose {' or '.join(_RUNNERS[where])}")
    return runner or _RUNNERS[where][0]


def _preprocess_locally(request: _Request) -> "MergeResult":
    from jobs.pipeline import preprocess_locally

    assert request.output is not None
    with sole_writer(request.output), Bars() as bars:
        return preprocess_locally(
            request.inputs,
            request.output,
            settings=request.settings,
            runner=request.runner,
            max_malformed=request.max_malformed,
            allow_damaged=request.allow_damaged,
            progress=bars,
        )


def _preprocess_on_deployment(request: _Request, target: Target, *, detach: bool, force: bool) -> "MergeResult":
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.preprocessing.preprocess import LaunchOptions, preprocess_on_deployment

    with Bars() as bars:
        return preprocess_on_deployment(
            find_deployment(target.name, target.account),
            request.inputs,
            settings=request.settings,
            max_malformed=request.max_malformed,
            allow_damaged=request.allow_damaged,
            bars=bars,
            say=say,
            launch=LaunchOptions(runner=request.runner, detach=detach, force=force),
        )


def _show_preview(request: _Request) -> None:
    """Show what would be done, and end with the run's error if the sample shows one."""
    from bootstrap.cli.preview import content, text
    from bootstrap.preprocessing.preview import check_preview, preview_local, preview_on_deployment
    from jobs.job_settings import read_stopwords

    read_stopwords(request.settings.stopwords, request.settings.words)
    if request.target is None:
        preview = preview_local(
            request.inputs, request.settings, output=request.output, processes=request.runner != "inline"
        )
    else:
        from bootstrap.aws.deployment import find_deployment

        deployment = find_deployment(request.target.name, request.target.account)
        preview = preview_on_deployment(request.inputs, request.settings, deployment)
    print_result(Result(content(preview), [text(preview)]))
    check_preview(preview, max_malformed=request.max_malformed, allow_damaged=request.allow_damaged)
