"""What balancers make of GPUs of any mix, with stragglers and failures, by a modelled clock.

    python -m benchmarks simulate --nodes g5.xlarge:3 g4dn.xlarge:1
    python -m benchmarks simulate --nodes p4d.24xlarge:32 --rank-batch 512 --failures 0.02
    python -m benchmarks simulate --nodes g5.12xlarge:1 --scale 64 --balance steps
    python -m benchmarks simulate --rates results/rates --global-batch 512

The order and the balancers are the trainer's own, beside two published ones (LB-BSP, Cannikin). GPUs have the speed of
the catalogue, or of ranks that were measured (--rates). Nothing is started, and nothing paid.
"""

import argparse
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.record import Log
from benchmarks.simulation.cluster import Cluster, Troubles, simulate
from benchmarks.simulation.comparing import PUBLISHED, balancer_maker, growing
from benchmarks.simulation.making import cluster_of_nodes, cluster_of_rates
from bootstrap.cli.figures import read_size
from common.errors import UsageError
from experiments.forecast.rates import read_rates
from infra import catalog
from trainer.balancing.balancers import parse_balance
from trainer.order import BatchOrder

_NODES = (("g5.xlarge", 3), ("g4dn.xlarge", 1))
_MOST_GPUS, _MOST_STEPS = 1024, 1_000_000
_JITTER = 0.03
_LOSSES = ("waiting", "all_reduce", "others", "checkpoints", "lost")


class _Case(NamedTuple):
    """A cluster to simulate."""

    cluster: Cluster
    order: BatchOrder

    @property
    def gpus(self) -> int:
        return len(self.cluster.lines)


def main(arguments: Sequence[str]) -> None:
    """Simulate what the command line asks for, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks simulate", description=__doc__.partition("\n")[0])
    ranks, batch = parser.add_mutually_exclusive_group(), parser.add_mutually_exclusive_group()
    ranks.add_argument("--nodes", nargs="+", type=_group, default=_NODES, metavar="TYPE:N", help="types, and how many")
    ranks.add_argument("--rates", nargs="+", type=Path, metavar="DIR", help="of `shoal calibrate`, or trainings")
    batch.add_argument("--rank-batch", type=_whole, default=256, help="rows a step and GPU (default: %(default)s)")
    batch.add_argument("--global-batch", type=_whole, help="rows a step over all GPUs, instead")
    for name, how in _OPTIONS.items():
        parser.add_argument(name, **how)
    options = parser.parse_args(arguments)
    try:
        cases = _of_rates(options) if options.rates else _of_nodes(options)
        _check(options, cases)
    except UsageError as error:
        parser.error(str(error))
    log, found = Log("simulate"), []
    for case in cases:
        work = {"order": case.order, "epochs": options.epochs, "seed": options.seed}
        found.append({how: simulate(case.cluster, balancer_maker(how, case.order), **work) for how in options.balance})
    rows = []
    for case, results in zip(cases, found, strict=True):
        for how, each in results.items():
            alone = found[0][how]
            of_linear = each.rows / each.seconds / (alone.rows / alone.seconds) * cases[0].gpus / case.gpus
            losses = [f"{getattr(each, loss) / each.seconds:.1%}" for loss in _LOSSES]
            told = [f"{each.seconds:,.0f}", f"{each.rows / each.seconds:,.0f}", f"{of_linear:.1%}"]
            rows.append([f"{case.gpus}", f"{case.order.global_batch:,}", how, *told, f"{each.efficiency:.1%}", *losses])
    log.table(["GPUs", "rows a step", "balance", "seconds", "rows/s", "of linear", "efficiency", *_LOSSES], rows)
    sizes = [{how: vars(each) for how, each in results.items()} for results in found]
    log.keep({"sizes": [{"gpus": case.gpus, "balancers": each} for case, each in zip(cases, sizes, strict=True)]})


def _group(text: str) -> tuple[str, int]:
    """INSTANCE_TYPE:NODES as the type and the number. Raises argparse.ArgumentTypeError for any other text."""
    name, _, count = text.partition(":")
    if not re.fullmatch(r"[1-9][0-9]{0,8}", count or "1", re.ASCII):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not INSTANCE_TYPE:NODES, such as g5.xlarge:3")
    return name, int(count or 1)


def _whole(text: str) -> int:
    """A number from 1 on. Raises argparse.ArgumentTypeError for any other text."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from 1 on")
    return int(text)


def _share(text: str) -> float:
    """A number from 0 on. Raises argparse.ArgumentTypeError for any other text."""
    with suppress(ValueError):
        if 0 <= float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 0 on")


def _balancer(text: str) -> str:
    """The name of a balancer. Raises argparse.ArgumentTypeError for any other text."""
    try:
        _ = text in PUBLISHED or parse_balance(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: {error}, or {' or '.join(PUBLISHED)}") from None
    return text


_OPTIONS: dict[str, dict[str, Any]] = {
    "--scale": {"type": _whole, "default": 1, "help": "simulate 1, 2, 4, ... and so many times the --nodes"},
    "--balance": {
        "nargs": "+",
        "type": _balancer,
        "default": ("off", "epoch:1", "steps", *PUBLISHED),
        "help": f"as for `shoal train`, or {' or '.join(PUBLISHED)}",
    },
    "--exchange": {
        "choices": ("rows", "ddp"),
        "help": "as for `shoal train`; with ddp the sum overlaps with the last two thirds of the computing",
    },
    "--gradients": {"type": read_size, "help": "bytes that GPUs sum in a step (default: of the reference's model)"},
    "--steps": {"type": _whole, "default": 200, "help": "steps of an epoch (default: %(default)s)"},
    "--epochs": {"type": _whole, "default": 3, "help": "epochs (default: %(default)s)"},
    "--jitter": {
        "type": _share,
        "help": f"how times vary, as a share of them (default: {_JITTER}; 0 with --rates, which have the waits)",
    },
    "--stragglers": {"type": _share, "default": 0.0, "help": "times an hour that a GPU is slow for a minute"},
    "--failures": {"type": _share, "default": 0.0, "help": "times an hour that a GPU is lost"},
    "--seed": {"type": int, "default": 0, "help": "of the chance (default: %(default)s)"},
}


def _check(options: argparse.Namespace, cases: Sequence[_Case]) -> None:
    """Raise UsageError for options that do not go together."""
    if (steps := options.epochs * options.steps) > _MOST_STEPS:
        raise UsageError(f"--epochs times --steps is {steps:,}, but at most {_MOST_STEPS:,} are simulated")
    if options.rates and (options.scale > 1 or options.exchange or options.gradients):
        raise UsageError("--scale, --exchange and --gradients go with --nodes; --rates has what was measured")
    for how in options.balance:
        shares = [] if how in PUBLISHED else parse_balance(how)[0]
        wrong = [case.gpus for case in cases if shares and case.gpus != len(shares)]
        if wrong:
            raise UsageError(f"--balance {how} has {len(shares)} shares for {wrong[0]} GPUs; give one for each")


def _of_nodes(options: argparse.Namespace) -> list[_Case]:
    """The clusters of --nodes. Raises UsageError and TopologyError for nodes that cannot be simulated."""
    gpus = 0
    for name, count in options.nodes:
        gpu = catalog.find(name).gpu
        if gpu is None:
            raise UsageError(f"--nodes names {name}, which has no GPU; `shoal catalog --gpu` lists the types that have")
        gpus += gpu.count * count
    if gpus * options.scale > _MOST_GPUS:
        raise UsageError(f"--nodes names {gpus * options.scale:,} GPUs, but at most {_MOST_GPUS:,} are simulated")
    cases = []
    for factor in growing(options.scale):
        order = _order(options, factor * gpus)
        cluster = cluster_of_nodes(
            [name for name, count in options.nodes for _ in range(count * factor)],
            _troubles(options, _JITTER),
            global_batch=order.global_batch,
            gradients=options.gradients,
            overlapping=options.exchange == "ddp",
        )
        cases.append(_Case(cluster, order))
    return cases


def _of_rates(options: argparse.Namespace) -> list[_Case]:
    """The ranks of --rates. Raises ExperimentError for runs that cannot be used."""
    cluster = cluster_of_rates(read_rates(options.rates), _troubles(options, 0.0))
    return [_Case(cluster, _order(options, len(cluster.lines)))]


def _troubles(options: argparse.Namespace, jitter: float) -> Troubles:
    chosen = jitter if options.jitter is None else options.jitter
    return Troubles(jitter=chosen, stragglers=options.stragglers, failures=options.failures)


def _order(options: argparse.Namespace, ranks: int) -> BatchOrder:
    batch = options.global_batch or options.rank_batch * ranks
    return BatchOrder(rows=batch * options.steps, global_batch=batch, seed=options.seed)
