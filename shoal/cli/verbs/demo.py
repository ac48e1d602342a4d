"""`shoal demo`: runs a deployment from start to end against the emulator; `make demo` calls it."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import Any

import click

from common.display import plural
from shoal.cli.command import command, option
from shoal.cli.figures import percent
from shoal.cli.output import Result, Rows, filled_rows, say
from shoal.cli.output_folder import sole_writer
from shoal.cli.training_result import SCORES, balanced_text

_SHOWN = 80


def _nodes(result: Mapping[str, Any]) -> str:
    nodes = zip(result["summary"]["nodes"], result["summary"]["rows_of_ranks"], result["slowed"], strict=True)
    return "; ".join(
        f"{rows:,} texts on {node['instance_type']}{f', slowed down by a factor of {slowed:g}' if slowed else ''}"
        for node, rows, slowed in nodes
    )


_ROWS: Rows = {
    "created": lambda result: ", ".join(plural(number, kind) for kind, number in sorted(result["created"].items())),
    "permissions": lambda result: (
        f"{sum(result['asked'].values()):,} requests by {len(result['asked'])} users and roles, all allowed"
    ),
    "reviews": "{counts.lines:,} lines, {counts.malformed:,} of them malformed and {counts.empty:,} without a text; "
    "{counts.distinct:,} distinct texts",
    "training": "{summary.rows:,} texts, {summary.epochs} epochs, in {summary.seconds:.1f} s; "
    "{summary.global_batch:,} texts per step, split over the nodes in proportion to their speeds",
    "nodes": _nodes,
    "balanced": lambda result: balanced_text(result["summary"]),
}
_END: Rows = {
    "price on AWS": "${dollars_an_hour:.2f} per hour while everything runs (us-east-1, on demand)",
    "time": "{total_seconds:.0f} s",
    "report": "{report}",
}


@command(
    help="Run a deployment from start to end against an AWS emulator on this machine: deploy the topology 'demo' with "
    "the real CDK, preprocess reviews, train a model on two nodes of different speed, label some texts, destroy "
    "everything, and verify that nothing is left. It needs no AWS account and takes two minutes on two idle cores.",
    epilog="Example: shoal demo --input reviews/*.json.gz",
)
@option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH...",
    help="your own reviews, as for `shoal preprocess --input` (default: several thousand generated reviews)",
)
@option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("results/demo"),
    metavar="DIR",
    help="folder for the generated reviews, logs, the trained model and its record (model/), and report.html (default: "
    "results/demo). "
    "Files of an earlier demo are replaced; other files are kept",
)
def run(inputs: tuple[Path, ...], output: Path) -> Result:
    from shoal.demo import life

    with sole_writer(output):
        result = life.run(list(inputs), output, say=lambda text: say(f"demo: {text}"))
    summary, content = result.summary, asdict(result)
    shown = {**content, "slowed": [life.SLOWED.get(rank, 0) for rank in range(len(summary["nodes"]))]}
    labelled = [
        (f"'{shorten(text, _SHOWN, placeholder=' ...')}'", f"{label} ({percent(probability)} positive)")
        for text, label, probability in result.predictions
    ]
    passed = (
        f"shoal: demo passed: accuracy {percent(summary['accuracy'])} (majority class: "
        f"{percent(summary['majority'])}), "
        f"{plural(result.created_total, 'resource')} created, {result.left_total} left"
    )
    rows = [*filled_rows(_ROWS, shown), *filled_rows(SCORES, summary), *labelled, *filled_rows(_END, content)]
    return Result(content, [rows, passed])
