"""`shoal simulate`: what balancers make of GPUs of any mix, with stragglers and failures, by a modelled clock."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from bootstrap.cli.command import MOST_RANKS, Converted, command, option
from bootstrap.cli.figures import read_size
from bootstrap.cli.output import json_option, percent, show, table
from bootstrap.errors import UsageError

if TYPE_CHECKING:
    from experiments.simulation.cluster import Cluster, Simulated, Troubles
    from trainer.order import BatchOrder

_MOST_STEPS = 1_000_000
_DEFAULT = ("off", "epoch:1", "steps", "lb-bsp", "cannikin")
_RANK_BATCH, _JITTER = 256, 0.03
_OF_NODES = ("scale", "exchange", "gradients")


class _Case(NamedTuple):
    """A cluster to simulate."""

    nodes: int
    """0: not known."""
    cluster: "Cluster"
    order: "BatchOrder"


def _group(text: str) -> tuple[str, int]:
    """INSTANCE_TYPE:NODES as the type and the number. Raises argparse.ArgumentTypeError for any other text."""
    name, _, count = text.partition(":")
    if not re.fullmatch(r"[1-9][0-9]{0,8}", count or "1", re.ASCII):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not INSTANCE_TYPE:NODES, such as g5.xlarge:3")
    return name, int(count or 1)


@command(
    short_help="simulate balancing on GPUs of any mix, with stragglers and failures",
    help="Train by a modelled clock: the trainer's own order and balancers, and two published ones (LB-BSP, Cannikin), "
    "on GPUs of any mix, whose speed is that of the catalogue, or on ranks that were measured (--rates). Nothing is "
    "started, and nothing paid.",
    epilog="""\
\b
Examples:
  shoal simulate --nodes g5.xlarge:3 g4dn.xlarge:1
  shoal simulate --nodes p4d.24xlarge:32 --rank-batch 512 --failures 0.02
  shoal simulate --nodes g5.12xlarge:1 --scale 64 --balance steps
  shoal simulate --rates results/rates --global-batch 512
""",
)
@option(
    "--nodes",
    several=True,
    type=Converted(_group),
    metavar="TYPE:N",
    help="instance types, and how many",
)
@option(
    "--rates",
    several=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="the output of `shoal calibrate`, or trainings with the same model and ranks: simulate these ranks",
)
@option(
    "--scale",
    type=click.IntRange(min=2),
    metavar="K",
    help="with --nodes: simulate 1, 2, 4, ... and K times as many of them, to see where efficiency falls",
)
@option("--balance", several=True, default=_DEFAULT, metavar="HOW", help="as for `shoal train`, or lb-bsp or cannikin")
@option(
    "--rank-batch", type=click.IntRange(min=1), metavar="ROWS", help=f"rows a step and GPU (default: {_RANK_BATCH})"
)
@option("--global-batch", type=click.IntRange(min=1), metavar="ROWS", help="rows a step over all GPUs, instead")
@option(
    "--exchange",
    type=click.Choice(("rows", "ddp")),
    default="rows",
    help="with --nodes: as for `shoal train`; with ddp the GPUs add up gradients during the backward pass, the last "
    "two thirds of their computing (default: rows)",
)
@option(
    "--gradients",
    type=Converted(read_size),
    metavar="SIZE",
    help="with --nodes: bytes that the GPUs add up in a step, such as 100MB (default: of the reference's model; with "
    "rows those that a batch touches, at most 4.1MB)",
)
@option("--steps", type=click.IntRange(2, 100_000), default=200, help="steps of an epoch (default: 200)")
@option("--epochs", type=click.IntRange(1, 1000), default=3, help="epochs (default: 3)")
@option(
    "--jitter",
    type=click.FloatRange(0, 1),
    help=f"how times vary, as a share of them (default: {_JITTER}; with --rates 0, because what waits for the slowest "
    "is part of what was measured)",
)
@option("--stragglers", type=click.FloatRange(min=0), default=0.0, help="times an hour that a GPU is slow for a minute")
@option("--failures", type=click.FloatRange(min=0), default=0.0, help="times an hour that a GPU is lost")
@option("--seed", type=click.IntRange(min=0), default=0, help="of the chance (default: 0)")
@json_option
@click.pass_context
def run(ctx: click.Context, /, *, balance: Sequence[str], as_json: bool, **asked: Any) -> int:
    """Run `shoal simulate`."""
    from bootstrap.progress import Bars
    from experiments.simulation.comparing import compare

    _check(ctx, balance)
    cases = _of_rates(asked) if asked["rates"] else _of_nodes(asked)
    _require_shares(balance, cases)
    found: list[tuple[_Case, dict[str, Simulated]]] = []
    with Bars(unit="step") as bars:
        steps = len(balance) * asked["epochs"] * asked["steps"]
        bars.stage("simulate", len(cases) * steps)
        for number, case in enumerate(cases):

            def show_step(done: int, before: int = number * steps) -> None:
                bars.at(before + done)

            results = compare(
                case.cluster, balance, case.order, epochs=asked["epochs"], seed=asked["seed"], progress=show_step
            )
            found.append((case, results))
    if asked["scale"]:
        _show_scale(found, as_json=as_json)
    else:
        _show_balancers(*found[0], as_json=as_json)
    return 0


def _check(ctx: click.Context, balance: Sequence[str]) -> None:
    """Raise UsageError for options that do not go together, and for a balancer that there is not."""
    from experiments.simulation.comparing import PUBLISHED
    from trainer.balancing.balancers import parse_balance

    asked = ctx.params
    if bool(asked["nodes"]) == bool(asked["rates"]):
        raise UsageError(
            "a simulation is of GPUs of the catalogue, or of ranks that were measured; give --nodes or --rates"
        )
    if (steps := asked["epochs"] * asked["steps"]) > _MOST_STEPS:
        raise UsageError(f"--epochs times --steps is {steps:,}, but at most {_MOST_STEPS:,} are simulated")
    if asked["rank_batch"] and asked["global_batch"]:
        raise UsageError("--rank-batch and --global-batch contradict each other; give one")
    for name in _OF_NODES:
        if asked["rates"] and ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise UsageError(
                f"--{name} goes with --nodes; the ranks of --rates and their sum were measured as they are"
            )
    for how in balance:
        try:
            _ = how in PUBLISHED or parse_balance(how)
        except ValueError as error:
            raise UsageError(f"--balance is {how}, but {error}, or {' or '.join(PUBLISHED)}") from None


def _require_shares(balance: Sequence[str], cases: Sequence[_Case]) -> None:
    """Raise UsageError for fixed shares that are not one for each GPU."""
    from experiments.simulation.comparing import PUBLISHED
    from trainer.balancing.balancers import parse_balance

    for how in balance:
        shares = [] if how in PUBLISHED else parse_balance(how)[0]
        wrong = [gpus for case in cases if shares and (gpus := len(case.cluster.lines)) != len(shares)]
        if wrong:
            raise UsageError(f"--balance {how} has {len(shares)} shares for {wrong[0]} GPUs; give one for each")


def _of_nodes(asked: dict[str, Any]) -> list[_Case]:
    """The cluster of --nodes, or those of --scale. Raises UsageError and TopologyError for nodes that cannot be
    simulated."""
    from experiments.simulation.comparing import growing
    from experiments.simulation.making import cluster_of_nodes
    from infra import catalog

    gpus = 0
    for name, count in asked["nodes"]:
        gpu = catalog.find(name).gpu
        if gpu is None:
            raise UsageError(f"--nodes names {name}, which has no GPU; `shoal catalog` lists the types that have")
        gpus += gpu.count * count
    factors = growing(asked["scale"]) if asked["scale"] else [1]
    if gpus * factors[-1] > MOST_RANKS:
        raise UsageError(f"--nodes names {gpus * factors[-1]:,} GPUs, but at most {MOST_RANKS:,} are simulated")
    cases = []
    for factor in factors:
        nodes = [name for name, count in asked["nodes"] for _ in range(count * factor)]
        order = _order(asked, factor * gpus)
        cluster = cluster_of_nodes(
            nodes,
            _troubles(asked, _JITTER),
            global_batch=order.global_batch,
            gradients=asked["gradients"],
            overlapping=asked["exchange"] == "ddp",
        )
        cases.append(_Case(len(nodes), cluster, order))
    return cases


def _of_rates(asked: dict[str, Any]) -> list[_Case]:
    """The ranks of --rates. Raises ExperimentError for runs that cannot be used."""
    from experiments.prediction.rates import read_rates
    from experiments.simulation.making import cluster_of_rates

    cluster = cluster_of_rates(read_rates(asked["rates"]), _troubles(asked, 0.0))
    return [_Case(0, cluster, _order(asked, len(cluster.lines)))]


def _troubles(asked: dict[str, Any], jitter: float) -> "Troubles":
    from experiments.simulation.cluster import Troubles

    chosen = jitter if asked["jitter"] is None else asked["jitter"]
    return Troubles(jitter=chosen, stragglers=asked["stragglers"], failures=asked["failures"])


def _order(asked: dict[str, Any], ranks: int) -> "BatchOrder":
    from trainer.order import BatchOrder

    batch = asked["global_batch"] or (asked["rank_batch"] or _RANK_BATCH) * ranks
    return BatchOrder(rows=batch * asked["steps"], global_batch=batch, seed=asked["seed"])


_LOSSES = ("waiting", "all-reduce", "others", "checkpoints", "lost")


def _show_balancers(case: _Case, found: "dict[str, Simulated]", *, as_json: bool) -> None:
    heads = ("balance", "efficiency", "seconds", "rows/s", *_LOSSES)
    rows = [
        (how, percent(each.efficiency), f"{each.seconds:,.0f}", f"{each.rows / each.seconds:,.0f}", *_losses(each))
        for how, each in found.items()
    ]
    show(_content(case, found), table(rows, heads, right=range(1, len(heads)), ruled=True), as_json=as_json)


def _show_scale(found: "list[tuple[_Case, dict[str, Simulated]]]", *, as_json: bool) -> None:
    """Show each balancer at each size, beside the same with the smallest size."""
    from experiments.simulation.comparing import largest_loss

    (first, alone), rows, content = found[0], [], []
    for case, results in found:
        linear = {}
        for how, each in results.items():
            reached = (each.rows / each.seconds) / (alone[how].rows / alone[how].seconds)
            linear[how] = reached * first.nodes / case.nodes
            rows.append(
                (
                    *(f"{case.nodes}", f"{len(case.cluster.lines)}", f"{case.order.global_batch:,}", how),
                    *(f"{each.rows / each.seconds:,.0f}", percent(linear[how]), percent(each.efficiency)),
                    *(_losses(each)[:3]),
                    largest_loss(each),
                )
            )
        content.append({"nodes": case.nodes, **_content(case, results), "of_linear": linear})
    heads = ("nodes", "GPUs", "rows a step", "balance", "rows/s", "of linear", "efficiency", *_LOSSES[:3], "loses most")
    right = [0, 1, 2, *range(4, len(heads) - 1)]
    show({"sizes": content}, table(rows, heads, right=right, ruled=True), as_json=as_json)


def _content(case: _Case, found: "dict[str, Simulated]") -> dict[str, Any]:
    """The same for a program."""
    balancers = {
        how: {**vars(each), "seconds": each.seconds, "efficiency": each.efficiency} for how, each in found.items()
    }
    return {"gpus": len(case.cluster.lines), "global_batch": case.order.global_batch, "balancers": balancers}


def _losses(found: "Simulated") -> tuple[str, ...]:
    shares = (found.waiting, found.all_reduce, found.others, found.checkpoints, found.lost)
    return tuple(percent(each / found.seconds) for each in shares)
