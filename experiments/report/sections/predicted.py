"""What launches were predicted to take, beside what they took."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from common.display import printable
from experiments.report.figures import Column, Figure, Value
from experiments.report.subjects import Subject

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Range(BaseModel):
    low: Seconds
    middle: Seconds
    high: Seconds


class _Predicted(BaseModel):
    """What is read of `predicted` in launch.json."""

    seconds: _Range
    stages: dict[str, Seconds] = {}


class _Took(BaseModel):
    name: str
    seconds: Seconds


class _Launch(BaseModel):
    seconds: Seconds
    stages: list[_Took] = []
    predicted: _Predicted


def predicted(subjects: Sequence[Subject]) -> Figure | None:
    """The table of all launches that were predicted, a row for each stage; None where none was."""
    rows = [[each.name, *cells] for each in subjects for cells in _rows(each.run.launch)]
    if not rows:
        return None
    columns = [
        Column(key="run", head="run"),
        Column(key="stage", head="stage"),
        Column(key="predicted", head="predicted, s", form=",.1f"),
        Column(key="low", head="at least, s", form=",.1f"),
        Column(key="high", head="at most, s", form=",.1f"),
        Column(key="took", head="took, s", form=",.1f"),
        Column(key="off", head="off by", form="+.0%"),
    ]
    return Figure(key="predicted", title="Predicted and measured", columns=columns, rows=rows)


def _rows(launch: Mapping[str, Any]) -> list[list[Value]]:
    """The stages of a launch, and all of them together; empty where it was not predicted, or cannot be read, and where
    AWS was emulated: what was predicted is of its nodes, and what it took of one machine that played them."""
    if launch.get("emulated"):
        return []
    try:
        found = _Launch.model_validate(launch)
    except ValidationError:
        return []
    took, whole = {each.name: each.seconds for each in found.stages}, found.predicted.seconds
    stages: list[list[Value]] = [
        [printable(name), middle, None, None, took.get(name), _off(middle, took.get(name))]
        for name, middle in found.predicted.stages.items()
    ]
    return [*stages, ["all", whole.middle, whole.low, whole.high, found.seconds, _off(whole.middle, found.seconds)]]


def _off(middle: float, seconds: float | None) -> float | None:
    return seconds / middle - 1 if seconds is not None and middle else None
