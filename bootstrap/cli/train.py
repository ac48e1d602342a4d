"""`shoal train`: a dataset to a trained model."""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bootstrap.cli.named import account_of, add_where, checked
from bootstrap.cli.output import add_json, percent, summary
from bootstrap.errors import UsageError
from bootstrap.progress import Bars
from trainer.config import TrainConfig, add_arguments, from_args
from trainer.errors import TrainingError


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "train",
        help="train a model on a dataset",
        description="Train a sentiment model by data-parallel SGD; a global batch is split over the ranks in "
        "proportion to their measured speed. Ctrl-C stops with a checkpoint; --resume goes on. With --deployment its "
        "GPU nodes are started for the training, and paid for until it ends.",
        epilog="Examples: shoal train --deployment starter --output results/model; shoal train --local --nodes 2 "
        "--slow 1:2.0 --data results/data/dataset.h5 --output results/model",
    )
    add_where(parser)
    parser.add_argument("--nodes", type=int, metavar="N", help="with --local: ranks on this machine (default: 1)")
    parser.add_argument(
        "--data",
        metavar="DATASET",
        help="a dataset made by `shoal preprocess`: a file or, with --deployment, also s3://... "
        "(default there: the deployment's newest)",
    )
    add_arguments(parser, leave_out=("data",))
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    if args.local:
        if args.region is not None:
            raise UsageError("--region goes with --deployment; with --local nothing leaves this machine")
        if args.data is None:
            raise UsageError("--local needs --data FILE, a dataset made by `shoal preprocess`")
        if args.nodes is not None and args.nodes < 1:
            raise UsageError(f"--nodes is {args.nodes}, but must be at least 1")
        from bootstrap.train import train_here

        config = _config(args, Path(args.data))
        with Bars(unit="row") as bars:
            result = train_here(config, ranks=args.nodes or 1, bars=bars)
    else:
        if args.nodes is not None:
            raise UsageError("--nodes goes with --local; a deployment uses all nodes of its topology")
        from bootstrap.deployment import find
        from bootstrap.train_remote import train_on

        config = _config(args, Path("dataset"))
        with Bars(unit="row") as bars:
            result = train_on(
                find(checked(args.deployment), account_of(args)),
                config,
                dataset=args.data,
                output=config.output,
                bars=bars,
            )
    summary(args, result, rows(result, config.output))
    return 0


def rows(result: dict[str, Any], output: Path) -> list[tuple[str, str]]:
    """The figures a person looks at."""
    speed = [
        ("rows", f"{result['rows_seen']:,} in {result['seconds']:.1f} s, {result['samples_per_second']:,.0f} a second"),
        ("rows given to each rank", " + ".join(f"{rows:,}" for rows in result["rows_of_ranks"])),
        *_nodes(result.get("nodes", ())),
    ]
    if result["stopped"]:
        return [*speed, ("stopped", "with a checkpoint; go on by the same command with --resume")]
    return [
        ("model", str(output / "model.pt")),
        *speed,
        ("share of ideal speed", percent(result["share_of_ideal"])),
        ("accuracy", f"{percent(result['accuracy'])} (always the majority: {percent(result['majority'])})"),
        ("balanced accuracy", percent(result["balanced_accuracy"])),
        ("F1 positive, negative", f"{result['f1_positive']:.3f}, {result['f1_negative']:.3f}"),
    ]


def _nodes(nodes: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Where a deployment's nodes were, and how they were paid for: neither need be what the topology prefers."""
    kinds = Counter((node["instance_type"], node["market"], node["zone"]) for node in nodes)
    told = [f"{count} {kind}, {market}, in {zone}" for (kind, market, zone), count in kinds.items()]
    return [("nodes", "; ".join(told))] if told else []


def _config(args: argparse.Namespace, data: Path) -> TrainConfig:
    try:
        return from_args(argparse.Namespace(**{**vars(args), "data": data}))
    except TrainingError as error:
        raise UsageError(str(error)) from error
