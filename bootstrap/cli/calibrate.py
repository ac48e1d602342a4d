"""`shoal calibrate`: how fast this machine's ranks are, for predictions."""

from pathlib import Path
from typing import Any

import click

from bootstrap.cli.command import argparse_options, command, option
from bootstrap.cli.output import json_option, show, table
from bootstrap.cli.train import config_of
from bootstrap.errors import UsageError
from bootstrap.progress import Bars
from trainer.command_line import add_arguments

_OF_THE_RUNS = ("data", "epochs", "global_batch", "rank_batch", "resume", "force", "preset", "record_every")
"""What calibration decides itself."""


@command(
    short_help="measure how fast this machine trains, for `shoal plan`",
    help="Train briefly, with steps of several sizes, and show what a step takes: the fixed part and the part of each "
    "row, by rank, and what the ranks need besides. `shoal plan --rates DIR` predicts by it. It takes a minute; do "
    "not run other programs meanwhile.",
    epilog="""\
\b
Example:
  shoal calibrate --local --nodes 2 --slow 1:2.0 --output results/rates
  shoal plan --local --rows 200000 --epochs 10 --rates results/rates
""",
)
@option("--local", is_flag=True, group="Where", help="on this machine")
@option("--nodes", group="Where", type=click.IntRange(min=1), default=1, metavar="N", help="ranks (default: 1)")
@option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DATASET",
    help="a dataset whose rows are trained on (default: random words, in rows as long as those of reviews)",
)
@argparse_options(lambda parser: add_arguments(parser, leave_out=_OF_THE_RUNS))
@json_option
@click.pass_context
def run(ctx: click.Context, /, *, local: bool, nodes: int, data: Path | None, as_json: bool, **_options: Any) -> int:
    """Run `shoal calibrate`."""
    if not local:
        raise UsageError("say where to measure: shoal calibrate --local")
    from bootstrap.training.calibration import calibrate_locally
    from experiments.prediction.rates import rates_of
    from experiments.runs import read_run

    config = config_of(ctx, Path("dataset"))
    with Bars(unit="row") as bars:
        folders = calibrate_locally(config, data=data, ranks=nodes, bars=bars)
    rates = rates_of([read_run(folder) for folder in folders])
    content = {
        "runs": [str(folder) for folder in folders],
        "ranks": [{"fixed": line.fixed, "per_row": line.per_row} for line in rates.ranks],
        "others": {"fixed": rates.others.fixed, "per_row": rates.others.per_row},
        "evaluation": rates.evaluation,
        "around": rates.around,
    }
    text = table(
        [
            (f"rank {rank}", f"{1e3 * line.fixed:.2f}", f"{1e6 * line.per_row:.1f}", f"{1 / line.per_row:,.0f}")
            for rank, line in enumerate(rates.ranks)
        ]
        + [("besides, of all", f"{1e3 * rates.others.fixed:.2f}", f"{1e6 * rates.others.per_row:.1f}", "")],
        ("", "ms a step", "us a row", "rows/s at most"),
        right=(1, 2, 3),
        ruled=True,
    )
    show(content, f"{text}\n\nTo predict by it: shoal plan --local --rows N --rates {config.output}", as_json=as_json)
    return 0
