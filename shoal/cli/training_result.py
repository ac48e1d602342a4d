"""Formats the summary of a training run: scores, nodes, speed, time, cost, and files that were not fetched."""

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.display import plural, size
from experiments.estimate import Estimate
from shoal.cli.figures import dollars, duration, percent
from shoal.cli.output import Result, Rows, filled, filled_rows, table
from shoal.interrupt import status_of
from trainer.classification.metrics import few_rows_note
from trainer.output.run_files import MODEL

_SHORTEST = 0.05
"""Shortest stage, in seconds, that is shown. Shorter ones would be shown as 0.0 s."""
_MOST_CLASSES, _MOST_LETTERS = 5, 10
"""Maximum size of a confusion matrix in 80 columns: number of classes, and characters per class name."""
_ON_HOSTS: Rows = {
    "run": "{run} continues without this command; to follow it, or to stop it by Ctrl-C, run the same command again"
}
_ON_DEPLOYMENT: Rows = {
    "run": "{run} continues without this command; its nodes are terminated when it ends",
    "to follow it": "shoal attach {deployment} {run}",
    "to stop it": "shoal stop {deployment} {run}",
    "its results": "shoal fetch {deployment} --run {run} --output results",
}


def training_result(summary: dict[str, Any], output: Path) -> Result:
    """Return the command's result for the summary of a run. `output`: the run's folder on this machine."""
    if summary.get("detached"):
        return Result(summary, [_ON_HOSTS if "hosts" in summary else _ON_DEPLOYMENT])
    rows = _FINISHED if summary.get("finished_before") else _ROWS
    shown = filled_rows(rows, summary)
    if not summary.get("finished_before"):
        shown += confusion_rows(matrix) if (matrix := summary.get("confusion")) else ()
        shown += [("not fetched", sentence) for sentence in summary.get("refused", ())]
    status = status_of(summary.get("stopped_by", "SIGINT")) if summary["stopped"] else int(bool(summary.get("refused")))
    if "accuracy" in summary and not status:
        shown.append(("curves", f"shoal report {shlex.quote(str(output))}"))
    return Result(summary, [[("model", _model(summary, output)), *shown]], status)


def confusion_rows(matrix: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return a confusion matrix from `Confusion.plain` as rows of text; [] if it has too many classes to show."""
    if len(matrix["classes"]) > _MOST_CLASSES:
        return []
    names = [_cut(name) for name in matrix["classes"]]
    cells = [[f"{number:,}" for number in counts] for counts in matrix["counts"]]
    lines = table(cells, names, right=range(len(names))).split("\n")
    return list(zip(["predicted as", *(f"  {name}" for name in names)], lines, strict=True))


def score_rows(
    texts: int, scores: Mapping[str, Any], matrix: Mapping[str, Any], **left_out: int
) -> list[tuple[str, str]]:
    """Return rows of text: number of scored texts, `left_out` (texts by reason), scores, and confusion matrix."""
    reasons = {"unknown": "without known words", "other_labels": "without a known rating or label"}
    out = ", ".join(f"{number:,} {reasons.get(name, name)}" for name, number in left_out.items() if number)
    scored = plural(texts, "text") + (f"; left out: {out}" if out else "")
    return [("scored", scored), *filled_rows(SCORES, scores), *confusion_rows(matrix)]


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 2]}.."


def _model(summary: Mapping[str, Any], output: Path) -> str:
    folder = output / MODEL
    stored = sum(each.stat().st_size for each in folder.iterdir()) if folder.is_dir() else 0
    if not stored and summary["stopped"]:
        return "none"
    return f"{folder}, {size(stored)}" if stored else str(folder)


def _words(summary: Mapping[str, Any]) -> str | None:
    if "words_a_row" not in summary:
        return None
    rows = summary["rows_seen"]
    read = rows * summary["words_a_row"]
    words = read if summary["stopped"] else summary.get("words_seen", read)
    rate = words / rows * summary["samples_per_second"] if rows else 0.0
    return f"{words:,.0f} in {summary['seconds']:.1f} s, {rate:,.0f} per second"


def _rows(summary: Mapping[str, Any]) -> str | None:
    if "words_a_row" in summary:
        return None
    return filled("{rows_seen:,} in {seconds:.1f} s, {samples_per_second:,.0f} per second", summary)


def _rows_per_rank(summary: Mapping[str, Any]) -> str | None:
    return " + ".join(f"{rows:,}" for rows in summary["rows_of_ranks"]) if _has_several_ranks(summary) else None


def _has_several_ranks(summary: Mapping[str, Any]) -> bool:
    return len(summary["rows_of_ranks"]) > 1


def _time(summary: Mapping[str, Any]) -> str:
    """Return the run's time and its stages, without empty ones. One rank measures its rate only for `summary.json`."""
    times = dict(summary["times"])
    if not _has_several_ranks(summary) and "rates" in times:
        times["other"] = times.get("other", 0.0) + times.pop("rates")
    stages = ", ".join(f"{seconds:.1f} {what}" for what, seconds in times.items() if seconds >= _SHORTEST)
    return f"{summary['wall']:.1f} s: {stages}"


def _share_of_ideal(summary: Mapping[str, Any]) -> str | None:
    text = "{share_of_ideal:.1%} of the sum of the ranks' speeds, measured before and after the run"
    return filled(text, summary) if _has_several_ranks(summary) else None


def _nodes(summary: Mapping[str, Any]) -> str | None:
    """Return the run's nodes as text. Their zone and market can differ from those that the topology prefers."""
    nodes = [*summary.get("nodes", ()), *summary.get("readers", ())]
    kinds = Counter((node["instance_type"], node["market"], node["zone"]) for node in nodes)
    return "; ".join(f"{count} {kind}, {market}, in {zone}" for (kind, market, zone), count in kinds.items()) or None


def _text(summary: Mapping[str, Any]) -> str | None:
    if "read" not in summary:
        return None
    from corpus.stream.progress import Status

    read = {**vars(Status()), **summary["read"]}
    return (
        f"{read['words']:,} words in {plural(read['lines'], 'line')}, {read['malformed']:,} malformed; readers waited "
        f"{read['waiting_seconds']:,.0f} s for the sources, and {read['paused_seconds']:,.0f} s for the ranks"
    )


def _predicted(summary: Mapping[str, Any]) -> str | None:
    if "launch" not in summary:
        return None
    launch, predicted = summary["launch"], summary["launch"]["predicted"]
    seconds = Estimate(**predicted["seconds"])
    cost = f", {Estimate(**predicted['dollars']).dollars()}" if predicted["dollars"] else ""
    return f"{seconds.time()}{cost} on AWS; actual time {duration(launch['seconds'])}"


def _cost(summary: Mapping[str, Any]) -> str | None:
    if summary.get("cost") is None:
        return None
    spot = any(node["market"] == "spot" for node in (*summary["nodes"], *summary.get("readers", ())))
    basis = " at most, because spot nodes count at on-demand prices" if spot else ", on demand"
    return f"{dollars(summary['cost'])}{basis}"


def balanced_text(summary: Mapping[str, Any]) -> str | None:
    """Return throughput and losses, with their causes, as shares of the sum of the ranks' speeds; None for one rank."""
    if summary["balanced"] is None or summary["lost"] is None or not _has_several_ranks(summary):
        return None
    lost = ", ".join(f"{percent(share)} {reason}" for reason, share in summary["lost"].items())
    return f"{percent(summary['balanced'])} of the sum of the ranks' speeds in the run; lost: {lost}"


def _evaluation(summary: Mapping[str, Any]) -> str | None:
    found = [
        f"{name.replace('_', ' ')} {'with too few known words' if value is None else f'{value:.3f}'}"
        for name, value in summary.items()
        if name.startswith(("similarity", "analogy", "pip"))
    ]
    return ", ".join(found) or None


def _accuracy(scores: Mapping[str, Any]) -> str | None:
    if not scores.get("accuracy_interval"):
        return filled("{accuracy:.1%} (majority class: {majority:.1%})", scores)
    low, high = scores["accuracy_interval"]
    interval = f"95% interval: {low:.1%} to {high:.1%}; "
    return filled(f"{{accuracy:.1%}} ({interval}majority class: {{majority:.1%}})", scores)


def _few_rows(scores: Mapping[str, Any]) -> str | None:
    counts = (scores.get("confusion") or {}).get("counts", ())
    return few_rows_note(sum(map(sum, counts)))


def _threshold(summary: Mapping[str, Any]) -> str | None:
    two = len((summary.get("confusion") or {}).get("classes", ())) == 2
    return filled("{threshold:.3f}", summary) if two else None


def _stopped(summary: Mapping[str, Any]) -> str | None:
    return "with a checkpoint; to continue, run the same command with --resume" if summary["stopped"] else None


SCORES: Rows = {
    "accuracy": _accuracy,
    "caution": _few_rows,
    "balanced accuracy": "{balanced_accuracy:.1%}",
    "macro-F1": "{macro_f1:.3f}",
    "F1 positive, negative": "{f1_positive:.3f}, {f1_negative:.3f}",
    "log loss": "{log_loss:.3f}",
    "calibration error": "{calibration_error:.1%}",
}
_FINISHED: Rows = {"finished": lambda _: "by an earlier command; to train again, use --force instead of --resume"}
_ROWS: Rows = {
    "rows": _rows,
    "words": _words,
    "vocabulary": "{vocabulary:,} words",
    "rows per rank": _rows_per_rank,
    "nodes": _nodes,
    "text": _text,
    "time": _time,
    "predicted": _predicted,
    "cost of the nodes": _cost,
    "balanced": balanced_text,
    "share of ideal": _share_of_ideal,
    "staleness": "{staleness.mean:.1f} steps on average, {staleness.most} at most",
    **SCORES,
    "positive above": _threshold,
    "uncalibrated": "log loss {uncalibrated_log_loss:.3f} (temperature {temperature:.2f})",
    "loss per pair": lambda summary: filled("{loss:.3f}", summary) if "words_a_row" in summary else None,
    "evaluation": _evaluation,
    "stopped": _stopped,
}
