"""Reads the summary of a run. Every field that Shoal reads is validated, because the nodes of a deployment can write
the file."""

import json
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from common.errors import ShoalError
from common.files import DOCUMENT_BYTES, read_regular
from trainer.classification.metrics import CALIBRATION, MEASURES, MEASURES_OF_TWO
from trainer.output.run_files import SUMMARY


def _with_communication(lost: dict[str, float]) -> dict[str, float]:
    if "communication" not in lost:
        raise ValueError("communication is missing")
    return lost


class _Checked(BaseModel):
    model_config = ConfigDict(strict=True)


class _Summary(_Checked):
    """Fields that every summary must have. The summaries of finished runs have the additional fields below."""

    stopped: bool
    rows: int
    rows_seen: int
    epochs: int
    world_size: int
    seconds: float
    samples_per_second: float
    rows_of_ranks: list[int]
    share_of_ideal: float | None
    balanced: float | None
    lost: Annotated[dict[str, float], AfterValidator(_with_communication)] | None
    times: dict[str, float]
    wall: float
    profile: list[dict[str, float]]


class Mistake(_Checked):
    """Wrong prediction on a test row (`Metrics.mistakes` in trainer/output/summary.py)."""

    label: Annotated[str, Field(alias="class")]
    prediction: str
    probability: Annotated[float, Field(ge=0, le=1)]
    words: str


class _EmbeddingSummary(_Summary):
    vocabulary: int
    words_a_row: float
    loss: float


class StoredConfusion(_Checked):
    """Confusion matrix in a summary or a record (`Confusion.plain`)."""

    classes: Annotated[list[str], Field(min_length=2)]
    counts: list[list[Annotated[int, Field(ge=0)]]]

    @model_validator(mode="after")
    def _is_square(self) -> Self:
        if {len(self.counts), *map(len, self.counts)} != {len(self.classes)}:
            raise ValueError("counts must have one row and one column for each class")
        return self


_measures: dict[str, Any] = dict.fromkeys((*MEASURES, *CALIBRATION), (float, ...))
_Interval = Annotated[list[float], Field(min_length=2, max_length=2)]
_measures["accuracy_interval"] = (_Interval | None, None)
_two_class_measures: dict[str, Any] = dict.fromkeys(MEASURES_OF_TWO, (float, ...))
_ClassifierSummary = create_model(
    "_ClassifierSummary", __base__=_Summary, **_measures, confusion=(StoredConfusion, ...)
)
_TwoClassSummary = create_model("_TwoClassSummary", __base__=_ClassifierSummary, **_two_class_measures)


def read_summary(folder: Path) -> dict[str, Any] | None:
    """Return the content of a run's summary.json, or None if the run has not written one.

    Raises ShoalError if a field that Shoal reads is missing or has a wrong type.
    """
    path = folder / SUMMARY
    try:
        content = json.loads(read_regular(path, DOCUMENT_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ShoalError(f"cannot read {path}: {error.strerror}; remove it, and train again") from error
    except (ValueError, RecursionError):
        content = None
    wrong = "it is not a JSON object"
    if isinstance(content, dict):
        try:
            _kind(content).model_validate(content)
            return content
        except ValidationError as error:
            wrong = f"'{error.errors()[0]['loc'][0]}' is missing or has a wrong type"
    raise ShoalError(
        f"{path} is not the summary of a training run: {wrong}; check the logs in its folder, and train again"
    )


def _kind(content: dict[str, Any]) -> type[_Summary]:
    if content.get("stopped") is True:
        return _Summary
    if "vocabulary" in content:
        return _EmbeddingSummary
    confusion = content.get("confusion")
    classes = confusion.get("classes") if isinstance(confusion, dict) else None
    return _ClassifierSummary if isinstance(classes, list) and len(classes) > 2 else _TwoClassSummary
