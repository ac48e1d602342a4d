"""Fields of summary.json. A resumed run measures `SinceStart` only from its latest start.

`tools/reference.py` makes a page of these docstrings.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict


class Metrics(TypedDict, total=False):
    """Metrics of a classifier on a set of rows (trainer/classification/metrics.py)."""

    accuracy: float
    """Share of correct predictions."""
    accuracy_interval: Sequence[float]
    """95% confidence interval of the accuracy (Wilson's score interval): its two ends."""
    majority: float
    """Share of the most frequent label: the accuracy of a constant prediction."""
    balanced_accuracy: float
    """Mean recall of the labels that occur."""
    macro_f1: float
    """Mean F1 of the labels that occur or are predicted."""
    f1_positive: float
    """F1 of label 1, for two classes."""
    f1_negative: float
    """F1 of label 0, for two classes."""
    log_loss: float
    """Log loss of the labels at the fitted temperature."""
    uncalibrated_log_loss: float
    """Log loss of the labels at temperature 1."""
    temperature: float
    """Divisor of the logits, fitted on the validation rows."""
    threshold: float
    """Decision threshold, fitted on the validation rows; 0.5 for more than two classes."""
    confusion: Mapping[str, Any]
    """`classes`: names by label. `counts[i][j]`: number of rows with label i and prediction j."""
    mistakes: Sequence[Mapping[str, Any]]
    """Only in the line `test`: the wrong predictions with the highest probabilities, at most 10 for each class.

    Each has `class`, `prediction`, `probability` and `words`: the first words of the row. A word outside the vocabulary
    is `…`.
    """


class WholeRun(TypedDict, total=False):
    """Fields about the whole run."""

    stopped: bool
    """True if the run was stopped before its end. Its metrics are then null."""
    validation: Mapping[str, float]
    """Loss and metrics on the validation rows after the latest epoch."""
    steps: int
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
    global_batch: int
    """Number of rows in a global batch."""
    world_size: int
    """Number of ranks."""
    precision: str
    """Precision of the computation, such as `bfloat16`."""
    positive_weight: float
    """Weight of positive rows in the loss; 1 for more than two classes."""
    strength: float | None
    """Factor of the outputs' distance from the class frequencies, which `linear` chooses on fewer than 2,000 training
    rows; 0 is a constant model. Otherwise null."""
    digest: str
    """Digest of the dataset."""


class SinceStart(TypedDict, total=False):
    """Fields about the time since the latest start. Ratios are null before the first step."""

    own_rates: Sequence[float]
    """Rows per second of each rank without waiting for others: the higher of two measurements, before and after the
    run."""
    share_of_ideal: float | None
    """Rows per second of the run, divided by the sum of `own_rates`."""
    balanced: float | None
    """Rows per second of the run, divided by the sum of the rates that the ranks had during the run."""
    lost: Mapping[str, float] | None
    """Share of the time that was lost for each reason: `imbalance`, `communication`, `data`, `checkpoints`, `rest`. The
    sum of these shares and `balanced` is 1."""
    split: Sequence[int]
    """Latest split of a full global batch: number of rows of each rank."""
    rows_of_ranks: Sequence[int]
    """Number of rows that each rank computed."""
    bytes_a_step: float | None
    """Bytes that a rank sends to other ranks per step of its own. An all-reduce counts as a ring."""
    staleness: Mapping[str, float]
    """Steps of other ranks that a rank had not seen (`--mode async`): `mean`, `most` and `bound`."""
    profile: Sequence[Mapping[str, float]]
    """Seconds of each rank: `order` (find rows), `rows` (read them), `forward`, `backward`, `slowed`, `pack`,
    `all_reduce` (including the wait for other ranks), `update`."""
    times: Mapping[str, float]
    """Seconds of the first rank: `loading`, `rates`, `waiting` (for text), `training`, `checkpoints`,
    `evaluation`, `other`."""
    wall: float
    """Seconds since the rendezvous: the sum of `times`."""


class Embeddings(TypedDict, total=False):
    """Fields that `shoal embed` adds. Measures that need a file are missing without it."""

    loss: float | None
    """Mean loss per word pair on the held-out rows."""
    vocabulary: int
    """Number of words with a vector."""
    words_a_row: float
    """Mean number of words in a row."""
    words_seen: int
    """Number of words of the stream that were trained on."""
    words_outside_vocabulary: int
    """Number of words in `words_seen` that have no vector."""
    similarity: float | None
    """Mean Spearman correlation over the files of `--similarity`; `similarity_NAME` for each file."""
    pip_loss: float
    """Distance from the co-occurrence counts of the text (pip_loss.py), with `pip_mean_square` and `pip_cosine`."""
    analogy_NAME_add: float
    """Share of the known questions of `--analogies` that 3CosAdd answers correctly; `analogy_NAME_mul`: the share for
    3CosMul."""
