"""Declares the fields of summary.json, and reads the file. A resumed run measures `SinceStart` only from its latest
start.

The nodes of a deployment can write the file, so every declared field is validated. `tools/reference.py` makes a page of
these docstrings.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from common.checked_values import describe
from common.errors import ShoalError
from common.files import DOCUMENT_BYTES, read_regular
from trainer.output.run_files import SUMMARY


class Part(BaseModel):
    """Some fields of summary.json. Fields without a default are required."""

    model_config = ConfigDict(strict=True)


class Mistake(Part):
    """Wrong prediction on a test row."""

    label: Annotated[str, Field(alias="class")]
    prediction: str
    probability: Annotated[float, Field(ge=0, le=1)]
    words: str


class StoredConfusion(Part):
    """Confusion matrix (`Confusion.plain`)."""

    classes: Annotated[list[str], Field(min_length=2)]
    counts: list[list[Annotated[int, Field(ge=0)]]]

    @model_validator(mode="after")
    def _is_square(self) -> Self:
        if {len(self.counts), *map(len, self.counts)} != {len(self.classes)}:
            raise ValueError("counts must have one row and one column for each class")
        return self


def _with_communication(lost: dict[str, float]) -> dict[str, float]:
    if "communication" not in lost:
        raise ValueError("communication is missing")
    return lost


class Metrics(Part):
    """Metrics of a classifier on a set of rows (trainer/classification/metrics.py)."""

    accuracy: float
    """Share of correct predictions."""
    accuracy_interval: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    """95% confidence interval of the accuracy (Wilson's score interval): its two ends."""
    majority: float
    """Share of the most frequent label: the accuracy of a constant prediction."""
    balanced_accuracy: float
    """Mean recall of the labels that occur."""
    macro_f1: float
    """Mean F1 of the labels that occur or are predicted."""
    f1_positive: float | None = None
    """F1 of label 1, for two classes."""
    f1_negative: float | None = None
    """F1 of label 0, for two classes."""
    log_loss: float
    """Log loss of the labels at the fitted temperature."""
    uncalibrated_log_loss: float
    """Log loss of the labels at temperature 1."""
    temperature: float
    """Divisor of the logits, fitted on the validation rows."""
    threshold: float
    """Decision threshold, fitted on the validation rows; 0.5 for more than two classes."""
    confusion: StoredConfusion
    """`classes`: names by label. `counts[i][j]`: number of rows with label i and prediction j."""
    mistakes: list[Mistake] = []
    """Only in the line `test`: the wrong predictions with the highest probabilities, at most 10 for each class.

    Each has `class`, `prediction`, `probability` and `words`: the first words of the row. A word outside the vocabulary
    is `…`.
    """


class _TwoClassMetrics(Metrics):
    f1_positive: float
    f1_negative: float


class Totals(Part):
    """Fields about the whole run, such as its steps and its seconds."""

    stopped: bool
    """True if the run was stopped before its end. Its metrics are then null."""
    validation: dict[str, Any] | None = None
    """Loss and metrics on the validation rows after the latest epoch."""
    steps: int | None = None
    """Number of steps."""
    rows_seen: int
    """Number of rows that the ranks computed, with repetitions."""
    seconds: float
    """Training time in seconds, including checkpoints."""
    samples_per_second: float
    """`rows_seen` divided by `seconds`."""
    rows: int
    """Number of training rows."""
    epochs: int
    """Number of epochs."""
    global_batch: int | None = None
    """Number of rows in a global batch."""
    world_size: int
    """Number of ranks."""
    precision: str | None = None
    """Precision of the computation, such as `bfloat16`."""
    positive_weight: float | None = None
    """Weight of positive rows in the loss; 1 for more than two classes."""
    strength: float | None = None
    """Factor of the outputs' distance from the class frequencies, which `linear` chooses on fewer than 2,000 training
    rows; 0 is a constant model. Otherwise null."""
    digest: str | None = None
    """Digest of the dataset."""


class SinceStart(Part):
    """Fields about the time since the latest start. Ratios are null before the first step."""

    own_rates: list[float] = []
    """Rows per second of each rank without waiting for others: the higher of two measurements, before and after the
    run."""
    share_of_ideal: float | None
    """Rows per second of the run, divided by the sum of `own_rates`."""
    balanced: float | None
    """Rows per second of the run, divided by the sum of the rates that the ranks had during the run."""
    lost: Annotated[dict[str, float], AfterValidator(_with_communication)] | None
    """Share of the time that was lost for each reason: `imbalance`, `communication`, `data`, `checkpoints`, `rest`. The
    sum of these shares and `balanced` is 1."""
    split: list[int] = []
    """Latest split of a full global batch: number of rows of each rank."""
    rows_of_ranks: list[int]
    """Number of rows that each rank computed."""
    bytes_a_step: float | None = None
    """Bytes that a rank sends to other ranks per step of its own. An all-reduce counts as a ring."""
    staleness: dict[str, float] | None = None
    """Steps of other ranks that a rank had not seen (`--mode async`): `mean`, `most` and `bound`."""
    profile: list[dict[str, float]]
    """Seconds of each rank: `order` (find rows), `rows` (read them), `forward`, `backward`, `slowed`, `pack`,
    `all_reduce` (including the wait for other ranks), `update`."""
    times: dict[str, float]
    """Seconds of the first rank: `loading`, `rates`, `waiting` (for text), `training`, `checkpoints`,
    `evaluation`, `other`."""
    wall: float
    """Seconds since the rendezvous: the sum of `times`."""


class Embeddings(Part):
    """Fields that `shoal embed` adds. Measures that need a file are missing without it."""

    loss: float
    """Mean loss per word pair on the held-out rows."""
    vocabulary: int
    """Number of words with a vector."""
    words_a_row: float
    """Mean number of words in a row."""
    words_seen: int | None = None
    """Number of words of the stream that were trained on."""
    words_outside_vocabulary: int | None = None
    """Number of words in `words_seen` that have no vector."""
    similarity: float | None = None
    """Mean Spearman correlation over the files of `--similarity`; `similarity_NAME` for each file."""
    pip_loss: float | None = None
    """Distance from the co-occurrence counts of the text (pip_loss.py), with `pip_mean_square` and `pip_cosine`."""
    analogy_NAME_add: float | None = None  # noqa: N815
    """Share of the known questions of `--analogies` that 3CosAdd answers correctly; `analogy_NAME_mul`: the share for
    3CosMul."""


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
            for part in _parts(content):
                part.model_validate(content)
            return content
        except ValidationError as error:
            wrong = describe(error)
    raise ShoalError(
        f"{path} is not the summary of a training run: {wrong}; check the logs in its folder, and train again"
    )


def _parts(content: dict[str, Any]) -> list[type[Part]]:
    if content.get("stopped") is True:
        return [Totals, SinceStart]
    if "vocabulary" in content:
        return [Totals, SinceStart, Embeddings]
    confusion = content.get("confusion")
    classes = confusion.get("classes") if isinstance(confusion, dict) else None
    return [Totals, SinceStart, Metrics if isinstance(classes, list) and len(classes) > 2 else _TwoClassMetrics]
