"""`shoal preprocess`: raw reviews to dataset.h5 and counts.json."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from bootstrap.cli.made import result, warnings
from bootstrap.cli.named import account_of, add_where, checked
from bootstrap.cli.output import add_json, say, show
from bootstrap.cli.reading import add_inputs, add_reading, read_inputs, require_s3, whole_command
from bootstrap.errors import UsageError
from bootstrap.progress import Bars
from corpus.errors import DataError
from jobs.choose import add_limits
from jobs.settings import add_settings, read_settings

if TYPE_CHECKING:
    from bootstrap.cli.preview import Preview
    from corpus.reading.sources import Inputs
    from corpus.settings import Settings
    from jobs.merge import Merged

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
      fields of other names; labels 0/1, 1/2, neg/pos and negative/positive are
      understood, others need --positive-label
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
  shoal preprocess --deployment starter --input s3://my-bucket/ 'more/*.parquet'
      on the EMR cluster of a deployment
"""


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "preprocess",
        help="turn raw reviews into a dataset",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    add_where(parser)
    add_inputs(parser)
    add_reading(parser)
    parser.add_argument(
        "--output", metavar="DIR_OR_S3", help="folder, or s3://..., for dataset.h5 and counts.json (with --local)"
    )
    parser.add_argument(
        "--runner",
        choices=("auto", "local", "inline", "streaming", "spark"),
        help="with --local: local (a process a core), inline (one process), or auto (the default: local but for little "
        "input); with --deployment: streaming (the default) or spark",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what is understood and estimated; write nothing")
    add_limits(parser)
    add_settings(parser.add_argument)
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    try:
        settings = read_settings(args)
        inputs = read_inputs(
            args, settings.rating_range, settings.rating_steps, rating_fraction=settings.rating_fraction
        )
    except DataError as error:
        raise UsageError(str(error)) from error
    _check(args)
    require_s3(*inputs.files, *inputs.test, *inputs.positive, *inputs.negative, args.output)
    with whole_command(args.typed):
        if args.dry_run:
            _preview(args, inputs, settings)
            return 0
        made = _here(args, inputs, settings) if args.local else _there(args, inputs, settings)
    noticed = warnings(made, settings)
    said = {"dataset": made.dataset, "digest": made.digest, **made.counts, "malformed_lines": made.malformed}
    show(args, {**said, "damaged": made.damaged, "warnings": noticed}, result(made))
    if not args.json:
        for each in noticed:
            say(f"warning: {each}")
    return 0


def _check(args: argparse.Namespace) -> None:
    """What goes with --local, and what with --deployment."""
    if args.local and args.region is not None:
        raise UsageError("--region goes with --deployment; with --local AWS's own configuration says it")
    if args.local and args.output is None and not args.dry_run:
        raise UsageError("--local needs --output, the folder for dataset.h5 and counts.json")
    if not args.local and args.output is not None:
        raise UsageError("--output goes with --local; a deployment keeps its datasets in its data bucket")
    where = "local" if args.local else "deployment"
    if args.runner not in (None, *_RUNNERS[where]):
        raise UsageError(f"--runner {args.runner} does not go with --{where}; choose {' or '.join(_RUNNERS[where])}")
    args.runner = args.runner or _RUNNERS[where][0]


def _here(args: argparse.Namespace, inputs: "Inputs", settings: "Settings") -> "Merged":
    from jobs.pipeline import preprocess

    with Bars() as bars:
        return preprocess(
            inputs,
            args.output,
            settings=settings,
            runner=args.runner,
            max_malformed=args.max_malformed,
            allow_damaged=args.allow_damaged,
            progress=bars,
        )


def _there(args: argparse.Namespace, inputs: "Inputs", settings: "Settings") -> "Merged":
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.preprocessing.preprocess import preprocess

    with Bars() as bars:
        return preprocess(
            find_deployment(checked(args.deployment), account_of(args)),
            inputs,
            settings=settings,
            max_malformed=args.max_malformed,
            allow_damaged=args.allow_damaged,
            runner=args.runner,
            bars=bars,
            say=say,
        )


def _preview(args: argparse.Namespace, inputs: "Inputs", settings: "Settings") -> None:
    """Show what would be done."""
    from bootstrap.cli.preview import Preview, content, text
    from corpus.reading.inputs.understanding import understand
    from corpus.reading.s3 import is_s3
    from corpus.reading.storage import join
    from jobs.preparation import estimate
    from jobs.settings import read_stopwords

    read_stopwords(settings.stopwords)
    uploads_to = None
    if args.local:
        cores = len(os.sched_getaffinity(0)) if args.runner != "inline" else 1
        # Results on S3 lie in a folder named by what they are, so that none replaces another.
        home = join(args.output, "DIGEST") if args.output and is_s3(args.output) else args.output
    else:
        from bootstrap.aws.deployment import find_deployment
        from bootstrap.preprocessing.cluster import EmrCluster
        from bootstrap.preprocessing.preprocess import RAW_PREFIX
        from infra import topology

        deployment = find_deployment(checked(args.deployment), account_of(args))
        for address in filter(is_s3, (*inputs.files, *inputs.test, *inputs.positive, *inputs.negative)):
            deployment.own(address)
        cores = EmrCluster(deployment).workers().vcpus
        home = f"s3://{deployment.output(topology.OUTPUT_DATA_BUCKET)}/{topology.DATASETS_PREFIX}DIGEST"
        uploads_to = f"s3://{deployment.output(topology.OUTPUT_RAW_BUCKET)}/{RAW_PREFIX}"
    understanding = understand(inputs, leave_out=args.output)
    preview = Preview(
        understanding=understanding,
        settings=understanding.settings(settings),
        estimated=estimate(understanding, cores),
        cores=cores,
        output=tuple(join(home, name) for name in ("dataset.h5", "counts.json")) if home else (),
        uploads_to=uploads_to,
    )
    show(args, content(preview), text(preview))
    _refuse(args, preview)


def _refuse(args: argparse.Namespace, preview: "Preview") -> None:
    """End as the run would, by what the sample shows of its input. Raises DataError."""
    from jobs.choose import check_input

    understanding = preview.understanding
    understanding.check_ratings(preview.settings, args.max_malformed)
    try:
        check_input(understanding.sample.tally, args.max_malformed, allow_damaged=args.allow_damaged)
    except DataError as error:
        raise DataError(f"if all of the input is as the sample is, the run will end so: {error}") from error
