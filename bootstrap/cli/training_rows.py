"""Rows of the summary of a training, of whichever model: the nodes, the speed, the time, what was predicted, the cost,
and what is missing."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bootstrap.cli.figures import dollars, duration, size
from bootstrap.cli.output import percent
from experiments.estimate import Estimate
from trainer.output.run_files import MODEL


def model_row(output: Path) -> tuple[str, str]:
    """A row of a summary on a run's model: its folder, and how large its files are."""
    folder = output / MODEL
    stored = sum(each.stat().st_size for each in folder.iterdir()) if folder.is_dir() else 0
    return "model", f"{folder}, {size(stored)}" if stored else str(folder)


def node_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """A deployment's nodes: zone and market may differ from what the topology prefers."""
    return [*_kinds("nodes", result.get("nodes", ())), *_kinds("readers", result.get("readers", ()))]


def predicted_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """What the command was predicted to take and cost, and what it took, by stage. Where AWS was emulated only the
    former: the prediction is of AWS's machines."""
    if "launch" not in result:
        return []
    launch, predicted = result["launch"], result["launch"]["predicted"]
    seconds = Estimate(**predicted["seconds"])
    cost = f", {Estimate(**predicted['dollars']).dollars()}" if predicted["dollars"] else ""
    if launch.get("emulated"):
        return [("predicted, on AWS", f"{seconds.time()}{cost}")]
    off = launch["seconds"] / seconds.middle - 1
    took = {stage["name"]: stage["seconds"] for stage in launch["stages"]}
    return [
        ("predicted", f"{seconds.time()}{cost}; it took {duration(launch['seconds'])} ({off:+.0%})"),
        *(
            (f"  {name}", f"{duration(expected)}; it took {duration(took[name])}")
            for name, expected in predicted["stages"].items()
        ),
    ]


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


def profile_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """What each rank spent the time of its steps on."""
    shares = phase_shares(result)
    if not shares:
        return []
    slowed = any(of_rank["slowed"] for of_rank in shares.values())
    phases = [phase for phase in next(iter(shares.values())) if phase != "slowed" or slowed]
    lines = [
        (f"  {name}", "  ".join(f"{percent(of_rank[phase]):<{len(phase)}}" for phase in phases))
        for name, of_rank in shares.items()
    ]
    return [("time of the steps", "  ".join(phases)), *lines]


def rows_of_ranks(result: dict[str, Any]) -> str:
    return " + ".join(f"{rows:,}" for rows in result["rows_of_ranks"])


def speed_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """How near the ranks together came to the sum of their speeds, and why not nearer.

    Empty for a resumed run that had no step left to train.
    """
    if None in (result["balanced"], result["share_of_ideal"], result["lost"]):
        return []
    if len(result["rows_of_ranks"]) == 1:
        share = percent(result["share_of_ideal"])
        return [("share of ideal", f"{share} of the rank's speed in bursts before and after")]
    lost = ", ".join(f"{percent(share)} {reason}" for reason, share in result["lost"].items())
    return [
        ("balanced", f"{percent(result['balanced'])} of the sum of the ranks' speeds in the run; lost: {lost}"),
        (
            "share of ideal",
            f"{percent(result['share_of_ideal'])} of the sum of their speeds in bursts before and after",
        ),
    ]


def time_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """Where the time of the run went, since its start or its resume."""
    spent = ", ".join(f"{seconds:.1f} {what}" for what, seconds in result["times"].items())
    return [("time", f"{result['wall']:.1f} s: {spent}")]


def _kinds(name: str, nodes: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    kinds = Counter((node["instance_type"], node["market"], node["zone"]) for node in nodes)
    texts = [f"{count} {kind}, {market}, in {zone}" for (kind, market, zone), count in kinds.items()]
    return [(name, "; ".join(texts))] if texts else []


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
