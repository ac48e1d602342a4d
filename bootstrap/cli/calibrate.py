"""`shoal calibrate`: how fast the ranks of this machine or of a deployment are, for predictions."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import command, described_options, option
from bootstrap.cli.output import confirm, json_option, say, show, table
from bootstrap.cli.output_folder import sole_writer
from bootstrap.cli.target import Target, local_ranks_option, where_options
from bootstrap.cli.training_run import config_of, place_of
from bootstrap.progress import Bars
from common.errors import UsageError
from trainer.config import TrainConfig, options_for

if TYPE_CHECKING:
    from bootstrap.training.calibration import CalibrationPrice
    from bootstrap.training.places.place import Place

_OF_THE_RUNS = ("data", "epochs", "global_batch", "rank_batch", "resume", "force", "preset", "record_every")
"""What calibration decides itself."""
_STOPPED = 1


@command(
    short_help="measure how fast a machine or a deployment trains, for `shoal plan`",
    help="Train briefly, with steps of several sizes, and show what a step takes: the fixed part and the part of each "
    "row, by rank, and what the ranks need besides. `shoal plan --rates DIR` predicts by it. On this machine it takes "
    "a minute; do not run other programs meanwhile. With --deployment its GPU nodes are started for it, and paid for: "
    "it shows the price, and asks you.",
    epilog="""\
\b
Examples:
  shoal calibrate --local --nodes 2 --slow 1:2.0 --output results/rates
  shoal plan --local --rows 200000 --epochs 10 --rates results/rates
  shoal calibrate --deployment starter --output results/starter-rates
  shoal plan starter --rows 21300000 --rates results/starter-rates
""",
)
@where_options
@local_ranks_option
@option(
    "--data",
    metavar="DATASET",
    help="a dataset whose rows are trained on: a file or, with --deployment, also s3://... (default there: the "
    "deployment's newest; if there is none: random words, in texts as long as reviews)",
)
@option("--yes", is_flag=True, help="with --deployment: do not ask")
@option("--dry-run", is_flag=True, help="with --deployment: show the price, and start nothing")
@described_options(options_for("classes"), but=_OF_THE_RUNS)
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    target: Target | None,
    nodes: int | None,
    data: str | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    **_options: Any,
) -> int:
    """Run `shoal calibrate`."""
    config = config_of(ctx)
    if target is None:
        if yes or dry_run:
            raise UsageError("--yes and --dry-run go with --deployment; on this machine it costs nothing")
        from bootstrap.training.calibration import calibrate

        with sole_writer(config.output), Bars(unit="row") as bars:
            folders = calibrate(config, place_of(None, nodes), data=data, bars=bars)
        _show_rates(folders, f"shoal plan --local --rows N --rates {config.output}", as_json=as_json)
        return 0
    if not (yes or dry_run or sys.stdin.isatty()):
        raise UsageError("there is no terminal to ask on; look with --dry-run, then calibrate with --yes")
    return _calibrate_on_deployment(place_of(target, nodes), config, data, yes=yes, dry_run=dry_run, as_json=as_json)


def _calibrate_on_deployment(
    place: "Place", config: TrainConfig, data: str | None, *, yes: bool, dry_run: bool, as_json: bool
) -> int:
    from bootstrap.training.calibration import calibrate, calibration_price

    price = calibration_price(place)
    say(_price(price))
    content = {
        "calibrated": False,
        "nodes": [node._asdict() for node in price.nodes],
        "seconds": price.seconds._asdict(),
        "dollars": price.dollars and price.dollars._asdict(),
    }
    if dry_run or not (yes or confirm("Calibrate?")):
        show(content, "nothing was started", as_json=as_json)
        return 0 if dry_run else _STOPPED
    with sole_writer(config.output), Bars(unit="row") as bars:
        folders = calibrate(config, place, data=data, bars=bars)
    _show_rates(folders, f"shoal plan {place.topology} --rows N --rates {config.output}", as_json=as_json)
    return 0


def _price(price: "CalibrationPrice") -> str:
    """A sentence on what a calibration is expected to cost."""
    counts = Counter(node.instance_type for node in price.nodes)
    nodes = ", ".join(f"{count} {name}" for name, count in counts.items())
    low, middle, high = (each / 60 for each in price.seconds)
    if price.dollars is None:
        dollars = "no price is known for them here"
    else:
        dollars = f"${price.dollars.middle:,.2f} (${price.dollars.low:,.2f} to ${price.dollars.high:,.2f}) on demand"
    return f"It starts {nodes} for about {middle:.0f} minutes ({low:.0f} to {high:.0f}): {dollars}."


def _show_rates(folders: Sequence[Path], following: str, *, as_json: bool) -> None:
    """Show what a step takes by the runs in these folders, and the command that follows."""
    from experiments.forecast.rates import read_rates

    rates = read_rates(folders)
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
    show(content, f"{text}\n\nTo predict by it: {following}", as_json=as_json)
