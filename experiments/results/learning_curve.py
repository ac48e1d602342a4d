"""Accuracy by the number of labels, for each amount of text that a language model had learnt from before."""

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.records.runs import RunRecord
from experiments.results.arm_results import ArmResult, ExperimentResult

ACCURACY = "accuracy"


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """What an arm reached with so many labels."""

    arm: str
    labels: int
    """Rows that it learnt from."""
    tokens: int
    """Of the text that its language model learnt from, counted once; 0 without one."""
    accuracy: float
    """On the test rows: the mean of the runs, the least and the most."""
    least: float
    most: float
    seconds: float
    """Of training, the median."""
    pretraining_seconds: float
    dollars: float | None
    """The mean of a run; None where it is not known."""
    pretraining_dollars: float | None

    @property
    def line(self) -> str:
        """What it is a point of."""
        return f"{self.tokens:,} tokens" if self.tokens else "no pretraining"


def learning_curve(found: ExperimentResult) -> list[CurvePoint]:
    """The points of all arms with an accuracy, by tokens and labels; none where no arm starts from a language model."""
    if all(arm.pretraining is None for arm in found.arms):
        return []
    points = [point for arm in found.arms if (point := _point(arm)) is not None]
    return sorted(points, key=lambda each: (each.tokens, each.labels))


def lines_of(points: Sequence[CurvePoint]) -> dict[str, list[CurvePoint]]:
    """The points of each line."""
    found: dict[str, list[CurvePoint]] = {}
    for each in points:
        found.setdefault(each.line, []).append(each)
    return found


def _point(arm: ArmResult) -> CurvePoint | None:
    runs = [run for run in arm.runs if run.state == "finished" and ACCURACY in run.measures]
    if not runs or arm.seconds is None or (arm.starts_pretrained and arm.pretraining is None):
        return None
    reached = [run.measures[ACCURACY] for run in runs]
    before = arm.pretraining
    return CurvePoint(
        arm=arm.name,
        labels=runs[0].latest.rows.get("training", 0),
        tokens=round(_told(before, "tokens")),
        accuracy=arm.measures.get(ACCURACY, 0.0),
        least=min(reached),
        most=max(reached),
        seconds=arm.seconds.median,
        pretraining_seconds=_told(before, "seconds"),
        dollars=arm.dollars,
        pretraining_dollars=before.dollars if before else None,
    )


def _told(run: RunRecord | None, name: str) -> float:
    """A number of a run's summary."""
    return (run.told(name) or 0.0) if run else 0.0
