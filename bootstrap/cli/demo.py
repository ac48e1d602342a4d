"""`shoal demo`: what `make demo` runs."""

import argparse
from pathlib import Path
from textwrap import shorten
from typing import Any

from bootstrap.cli.output import percent, say, table
from corpus.counted import plural
from jobs.shown import printable

_SHOWN = 80


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "demo",
        help="show the whole life of a deployment on this machine",
        description="Deploy the topology 'demo' by the real CDK command to an AWS emulator on this machine, preprocess "
        "reviews, train a model on two nodes of different speed, label some texts with it, destroy everything, and "
        "prove that nothing is left. Needs no AWS account; takes about two minutes.",
        epilog="Example: shoal demo --input reviews/*.json.gz",
    )
    parser.add_argument(
        "--input",
        nargs="+",
        action="extend",
        type=Path,
        default=[],
        metavar="PATH",
        help="files or folders of your own, as `shoal preprocess --input` takes them, of whose test rows some are then "
        "labelled; "
        "default: several thousand that the demo writes itself",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("results/demo"),
        metavar="DIR",
        help="folder for the logs, with a folder `model` for the model and the run's record, which takes the place of "
        "an earlier demo's and of nothing else (default: %(default)s)",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from bootstrap import demo

    result = demo.run(args.input, args.output, say=lambda text: say(f"demo: {text}"))
    counts, summary = result.counts, result.summary
    created = ", ".join(plural(number, kind) for kind, number in sorted(result.created.items()))
    rows = [
        ("created", created),
        ("lines", f"{counts['lines']:,}, of them {counts['malformed']:,} malformed and {counts['empty']:,} empty"),
        ("rows", f"{counts['train']:,} to train, {counts['test']:,} to test, of {counts['distinct']:,} distinct texts"),
        ("accuracy", f"{percent(summary['accuracy'])} (always the majority: {percent(summary['majority'])})"),
        ("balanced accuracy", percent(summary["balanced_accuracy"])),
        ("F1 positive, negative", f"{summary['f1_positive']:.3f}, {summary['f1_negative']:.3f}"),
        ("nodes", ", ".join(f"{node['instance_type']} ({node['group']})" for node in summary["nodes"])),
        ("rows given to each", " + ".join(f"{rows:,}" for rows in summary["rows_of_ranks"])),
        ("share of ideal speed", percent(summary["share_of_ideal"])),
        *(
            (f"'{shorten(printable(text), _SHOWN, placeholder=' ...')}'", f"{label} ({percent(probability)} positive)")
            for text, label, probability in result.predictions
        ),
        ("on AWS", f"${result.dollars_an_hour:.2f} an hour while all of it runs (us-east-1, on demand)"),
        ("time", f"{sum(result.seconds.values()):.0f} s"),
        ("model, record, logs", str(args.output)),
    ]
    print(table(rows))  # noqa: T201
    print(  # noqa: T201
        f"shoal: demo passed: accuracy {percent(summary['accuracy'])} (majority {percent(summary['majority'])}), "
        f"{plural(result.created_total, 'resource')} created, {result.left_total} left"
    )
    return 0
