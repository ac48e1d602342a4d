"""`shoal demo`: what `make demo` runs."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.output import Result, filled_rows, percent, say
from bootstrap.cli.output_folder import sole_writer
from bootstrap.cli.scores import SCORES
from common.display import plural

if TYPE_CHECKING:
    from bootstrap.demo.life import DemoResult

_SHOWN = 80
_REASONS = {
    "imbalance": "one waited for the other",
    "communication": "adding up gradients",
    "data": "choosing texts",
    "checkpoints": "checkpoints",
    "rest": "the rest of a step",
}
"""Why the nodes were not at their full speed, in plain words."""


@command(
    short_help="show the whole life of a deployment on this machine",
    help="Deploy the topology 'demo' by the real CDK command to an AWS emulator on this machine, preprocess reviews, "
    "train a model on two nodes of different speed, label some texts with it, destroy everything, and prove that "
    "nothing is left. Needs no AWS account; takes about two minutes.",
    epilog="Example: shoal demo --input reviews/*.json.gz",
)
@option(
    "--input",
    "inputs",
    several=True,
    type=click.Path(path_type=Path),
    metavar="PATH...",
    help="files or folders of your own, as `shoal preprocess --input` takes them; some of their test rows are then "
    "labelled (default: several thousand reviews that the demo writes itself)",
)
@option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("results/demo"),
    metavar="DIR",
    help="folder for the logs, with a folder `model` for the model and the run's record, which replaces an earlier "
    "demo's and nothing else, and for report.html, the page on the training (default: results/demo)",
)
def run(inputs: tuple[Path, ...], output: Path) -> Result:
    from bootstrap.demo import life

    with sole_writer(output):
        result = life.run(list(inputs), output, say=lambda text: say(f"demo: {text}"))
    summary = result.summary
    passed = (
        f"shoal: demo passed: accuracy {percent(summary['accuracy'])} (majority {percent(summary['majority'])}), "
        f"{plural(result.created_total, 'resource')} created, {result.left_total} left"
    )
    return Result(asdict(result), [_rows(result, slowed=life.SLOWED, output=output), passed])


def _rows(result: "DemoResult", *, slowed: Mapping[int, float], output: Path) -> list[tuple[str, str]]:
    """The summary for a person; `slowed`: how many times slower ranks were made."""
    counts, summary = result.counts, result.summary
    lost = ", ".join(f"{percent(share)} {_REASONS[reason]}" for reason, share in summary["lost"].items())
    nodes = [
        (
            f"  node {rank + 1}, {node['instance_type']} ({node['group']})",
            f"{rows:,} texts" + (f"; this machine slows it down {slowed[rank]:g} times" if rank in slowed else ""),
        )
        for rank, (node, rows) in enumerate(zip(summary["nodes"], summary["rows_of_ranks"], strict=True))
    ]
    return [
        ("created", ", ".join(plural(number, kind) for kind, number in sorted(result.created.items()))),
        ("permissions", f"{sum(result.asked.values()):,} requests of {len(result.asked)} users and roles, all allowed"),
        (
            "reviews",
            f"{counts['lines']:,} lines, {counts['malformed']:,} of them malformed and {counts['empty']:,} without a "
            f"text; {counts['distinct']:,} distinct texts",
        ),
        (
            "training",
            f"{summary['rows']:,} texts, {summary['epochs']} times each, in {summary['seconds']:.1f} s; "
            f"{summary['global_batch']:,} a step, which the nodes share by their speeds",
        ),
        *nodes,
        ("  speed", f"{percent(summary['balanced'])} of the sum of the nodes' speeds during the training"),
        ("  lost", lost),
        *filled_rows(SCORES, summary),
        *(
            (f"'{shorten(text, _SHOWN, placeholder=' ...')}'", f"{label} ({percent(probability)} positive)")
            for text, label, probability in result.predictions
        ),
        ("on AWS", f"${result.dollars_an_hour:.2f} an hour while all of it runs (us-east-1, on demand)"),
        ("time", f"{result.total_seconds:.0f} s"),
        ("model, record, logs", str(output)),
        ("report", str(result.report)),
    ]
