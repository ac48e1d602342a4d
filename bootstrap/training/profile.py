"""Where the time of a run's steps went, computed from its summary."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

_MOST_RANKS = 8
"""More ranks than these are shown by node group."""


def phase_shares(summary: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Shares of the time of the steps: by rank, or for many ranks their mean over a node group; then by phase.

    What a rank spends in the all-reduce beyond the run's communication is its wait for other ranks. Empty for a run
    that had no step left to train.
    """
    if not summary["lost"]:
        return {}
    ranks: list[dict[str, float]] = summary["profile"]
    shares = {}
    for name, members in _groups(len(ranks), summary.get("nodes", ())).items():
        seconds = Counter[str]()
        for rank in members:
            seconds.update(ranks[rank])
        if total := sum(seconds.values()):
            by_phase = {phase: spent / total for phase, spent in seconds.items()}
            shares[name] = _with_wait(by_phase, communication=summary["lost"]["communication"])
    return shares


def _groups(ranks: int, nodes: Sequence[dict[str, Any]]) -> dict[str, list[int]]:
    """The ranks that are shown together, by a name for them. Nodes are in the order of their ranks."""
    if ranks <= _MOST_RANKS:
        return {f"rank {rank}": [rank] for rank in range(ranks)}
    groups = [node["group"] for node in nodes for _ in range(node["gpus"])]
    if len(groups) != ranks:
        return {f"{ranks} ranks": list(range(ranks))}
    return {name: [rank for rank in range(ranks) if groups[rank] == name] for name in dict.fromkeys(groups)}


def _with_wait(shares: dict[str, float], *, communication: float) -> dict[str, float]:
    """The phases as they are shown: the all-reduce is divided into communication and wait."""
    shown = {
        "data": shares.get("order", 0.0) + shares.get("rows", 0.0),
        "forward": shares.get("forward", 0.0),
        "backward": shares.get("backward", 0.0),
        "slowed": shares.get("slowed", 0.0),
        "all-reduce": min(communication, shares.get("all_reduce", 0.0)),
    }
    shown["wait"] = shares.get("all_reduce", 0.0) - shown["all-reduce"]
    return {**shown, "rest": 1.0 - sum(shown.values())}
