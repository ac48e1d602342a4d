"""`shoal simulate`: what balancers make of GPUs of any mix, with stragglers and failures, by a modelled clock."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import Converted, command, option
from bootstrap.cli.output import json_option, percent, show, table
from bootstrap.errors import UsageError

if TYPE_CHECKING:
    from experiments.simulation.cluster import Simulated

_MOST_GPUS = 1024
_DEFAULT = ("off", "epoch:1", "steps", "lb-bsp", "cannikin")


def _group(text: str) -> tuple[str, int]:
    """INSTANCE_TYPE:NODES as the type and the number. Raises argparse.ArgumentTypeError for any other text."""
    name, _, count = text.partition(":")
    if not (count or "1").isdecimal() or int(count or 1) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not INSTANCE_TYPE:NODES, such as g5.xlarge:3")
    return name, int(count or 1)


@command(
    short_help="simulate balancing on GPUs of any mix, with stragglers and failures",
    help="Train by a modelled clock: the trainer's own order and balancers, and two published ones (LB-BSP, Cannikin), "
    "on GPUs of any mix, whose speed is that of the catalogue. Nothing is started, and nothing paid.",
    epilog="""\
\b
Examples:
  shoal simulate --nodes g5.xlarge:3 g4dn.xlarge:1
  shoal simulate --nodes p4d.24xlarge:32 --rank-batch 512 --failures 0.02
""",
)
@option(
    "--nodes",
    required=True,
    several=True,
    type=Converted(_group),
    metavar="TYPE:N",
    help="instance types, and how many",
)
@option("--balance", several=True, default=_DEFAULT, metavar="HOW", help="as for `shoal train`, or lb-bsp or cannikin")
@option("--rank-batch", type=click.IntRange(min=1), default=256, help="rows a step and GPU (default: 256)")
@option("--steps", type=click.IntRange(min=2), default=200, help="steps of an epoch (default: 200)")
@option("--epochs", type=click.IntRange(min=1), default=3, help="epochs (default: 3)")
@option(
    "--jitter", type=click.FloatRange(0, 1), default=0.03, help="how times vary, as a share of them (default: 0.03)"
)
@option("--stragglers", type=click.FloatRange(min=0), default=0.0, help="times an hour that a GPU is slow for a minute")
@option("--failures", type=click.FloatRange(min=0), default=0.0, help="times an hour that a GPU is lost")
@option("--seed", type=click.IntRange(min=0), default=0, help="of the chance (default: 0)")
@json_option
def run(*, nodes: Sequence[tuple[str, int]], balance: Sequence[str], as_json: bool, **asked: Any) -> int:
    """Run `shoal simulate`."""
    from bootstrap.progress import Bars
    from experiments.prediction.communication import Links
    from experiments.prediction.gpu_rates import REFERENCE_OPERATIONS, rate_by_catalogue
    from experiments.prediction.nodes import MESSAGE_BYTES, STEP_SECONDS
    from experiments.simulation.cluster import Cluster, Troubles
    from experiments.simulation.comparing import PUBLISHED, compare
    from infra import catalog
    from trainer.balancing.balancers import parse_balance
    from trainer.order import BatchOrder

    for how in balance:
        try:
            _ = how in PUBLISHED or parse_balance(how)
        except ValueError as error:
            raise UsageError(f"--balance is {how}, but {error}, or {' or '.join(PUBLISHED)}") from None
    lines = []
    for name, count in nodes:
        gpu = catalog.find(name).gpu
        if gpu is None:
            raise UsageError(f"--nodes names {name}, which has no GPU; `shoal catalog` lists the types that have")
        lines += [rate_by_catalogue(gpu, REFERENCE_OPERATIONS).line] * (gpu.count * count)
    if len(lines) > _MOST_GPUS:
        raise UsageError(f"--nodes names {len(lines):,} GPUs, but at most {_MOST_GPUS:,} are simulated")
    batch = asked["rank_batch"] * len(lines)
    order = BatchOrder(rows=batch * asked["steps"], global_batch=batch, seed=asked["seed"])
    links = Links(
        nodes=sum(count for _, count in nodes),
        ranks=len(lines),
        gbits=min(catalog.find(name).network for name, _ in nodes),
    )
    cluster = Cluster(
        lines=lines,
        links=links,
        message_bytes=MESSAGE_BYTES,
        step_seconds=STEP_SECONDS,
        troubles=Troubles(jitter=asked["jitter"], stragglers=asked["stragglers"], failures=asked["failures"]),
    )
    with Bars(unit="step") as bars:
        bars.stage("simulate", len(balance) * asked["epochs"] * order.steps)
        found = compare(cluster, balance, order, epochs=asked["epochs"], seed=asked["seed"], progress=bars.at)
    text = table([_row(how, each) for how, each in found.items()], _HEADS, right=range(1, len(_HEADS)), ruled=True)
    content = {
        how: {**vars(each), "seconds": each.seconds, "efficiency": each.efficiency} for how, each in found.items()
    }
    show({"gpus": len(lines), "global_batch": batch, "balancers": content}, text, as_json=as_json)
    return 0


_HEADS = ("balance", "efficiency", "seconds", "rows/s", "waiting", "all-reduce", "others", "checkpoints", "lost")


def _row(how: str, found: "Simulated") -> tuple[str, ...]:
    shares = (found.waiting, found.all_reduce, found.others, found.checkpoints, found.lost)
    return (
        how,
        percent(found.efficiency),
        f"{found.seconds:,.0f}",
        f"{found.rows / found.seconds:,.0f}",
        *(percent(each / found.seconds) for each in shares),
    )
