"""Rows of the summary of a training about its launch: the nodes, what was predicted, the cost, and what is missing."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bootstrap.cli.figures import dollars


def node_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """A deployment's nodes: zone and market may differ from what the topology prefers."""
    return [*_kinds("nodes", result.get("nodes", ())), *_kinds("readers", result.get("readers", ()))]


def predicted_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """What the command was predicted to take, and what it took; of a deployment also each of its stages."""
    if "launch" not in result:
        return []
    launch = result["launch"]
    predicted = launch["predicted"]
    off = launch["seconds"] / predicted["seconds"]["middle"] - 1
    whole = f"{seconds_range(predicted['seconds'])}; it took {launch['seconds']:.1f} s ({off:+.0%})"
    stages = [
        (
            f"  {stage['name']}",
            f"{seconds_range(stage['seconds'])}{_dollars(stage['dollars'])}; it took {took['seconds']:.1f} s"
            f"{_dollars(took['dollars'])}",
        )
        for stage, took in zip(predicted.get("stages", ()), launch.get("stages", ()), strict=True)
    ]
    return [("predicted", whole), *stages]


def cost_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The cost of a deployment's nodes for this training."""
    if result.get("cost") is None:
        return []
    spot = any(node["market"] == "spot" for node in (*result["nodes"], *result.get("readers", ())))
    how = ", at most: spot nodes at their price on demand" if spot else ", on demand"
    return [("cost of the nodes", f"{dollars(result['cost'])}{how}")]


def refused_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """The objects of a deployment's run that were not fetched."""
    return [("not fetched", sentence) for sentence in result.get("refused", ())]


def seconds_range(estimate: dict[str, float]) -> str:
    """A time with its range."""
    return f"{estimate['middle']:.1f} s ({estimate['low']:.1f} to {estimate['high']:.1f})"


def _kinds(name: str, nodes: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    kinds = Counter((node["instance_type"], node["market"], node["zone"]) for node in nodes)
    texts = [f"{count} {kind}, {market}, in {zone}" for (kind, market, zone), count in kinds.items()]
    return [(name, "; ".join(texts))] if texts else []


def _dollars(amount: "dict[str, float] | float | None") -> str:
    """An amount behind a time; empty where no price is known."""
    if isinstance(amount, dict):
        return f", {dollars(amount['middle'])}"
    return "" if amount is None else f", {dollars(amount)}"
