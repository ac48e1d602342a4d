"""`shoal preprocess`: raw reviews to dataset.h5 and counts.json."""

import argparse
from pathlib import Path
from typing import Any

from bootstrap.cli.named import account_of, add_where, checked
from bootstrap.cli.output import add_json, percent, summary
from bootstrap.errors import UsageError
from bootstrap.progress import Bars
from corpus.errors import DataError
from jobs.choose import add_max_malformed
from jobs.settings import add_settings, read_settings


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "preprocess",
        help="turn raw reviews into a dataset",
        description="Turn raw reviews (JSON lines with reviewText and overall, plain, .gz or .bz2) into a dataset: "
        "duplicates removed, words as numbers, split into train and test. With --deployment its EMR cluster does it, "
        "which is paid for from its deployment until it has been idle for a while.",
        epilog="Examples: shoal preprocess --deployment starter --input reviews/*.json.gz; "
        "shoal preprocess --local --input reviews/*.json.gz --output results/data",
    )
    add_where(parser)
    parser.add_argument(
        "--input",
        nargs="+",
        action="extend",
        required=True,
        metavar="PATH_OR_S3",
        help="files or folders; with --deployment also s3://... (files here are uploaded to its raw bucket)",
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="folder for dataset.h5 and counts.json (with --local)"
    )
    add_max_malformed(parser)
    add_settings(parser.add_argument)
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    try:
        settings = read_settings(args)
    except DataError as error:
        raise UsageError(str(error)) from error
    if args.local:
        if args.region is not None:
            raise UsageError("--region goes with --deployment; with --local nothing leaves this machine")
        if args.output is None:
            raise UsageError("--local needs --output DIR, the folder for dataset.h5 and counts.json")
        if any(address.startswith("s3://") for address in args.input):
            raise UsageError("--local reads files of this machine; copy s3:// input here first, or use --deployment")
        from jobs.pipeline import preprocess as preprocess_here

        with Bars() as bars:
            made = preprocess_here(
                [Path(path) for path in args.input],
                args.output,
                settings=settings,
                max_malformed=args.max_malformed,
                progress=bars,
            )
    else:
        if args.output is not None:
            raise UsageError("--output goes with --local; a deployment keeps its datasets in its data bucket")
        from bootstrap.deployment import find
        from bootstrap.preprocess import preprocess as preprocess_there

        with Bars() as bars:
            made = preprocess_there(
                find(checked(args.deployment), account_of(args)),
                args.input,
                settings=settings,
                max_malformed=args.max_malformed,
                bars=bars,
            )
    summary(args, {"dataset": made.dataset, "digest": made.digest, **made.counts}, rows(made.dataset, made.counts))
    return 0


def rows(dataset: str, counts: dict[str, Any]) -> list[tuple[str, str]]:
    """The counts a person looks at."""
    positive = counts["positive_train"] + counts["positive_test"]
    reasons = ", ".join(f"{n} {reason}" for reason, n in counts["malformed_by_reason"].items() if n)
    return [
        ("dataset", dataset),
        ("lines", f"{counts['lines']:,}"),
        ("malformed", f"{counts['malformed']:,}" + (f" ({reasons})" if reasons else "")),
        ("empty", f"{counts['empty']:,}"),
        ("distinct texts", f"{counts['distinct']:,} ({counts['conflicting']:,} rated differently by their duplicates)"),
        ("without a kept word", f"{counts['wordless']:,}"),
        ("rows", f"{counts['train']:,} to train, {counts['test']:,} to test"),
        ("positive", percent(positive / (counts["train"] + counts["test"]))),
        ("unknown words", percent(counts["unknown_tokens"] / counts["tokens"])),
    ]
