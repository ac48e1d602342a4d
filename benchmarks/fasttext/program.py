"""The C++ program of fastText: cost of its calls, and quality of its classification.

Its training call reads the file for a dictionary, fills the tables, and then reads the file again for each epoch. A
call with zero epochs does only the first two. Its cost, the median of three calls, is subtracted from the cost of the
epochs.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.fasttext.piles import Example
from benchmarks.fasttext.regression import Predict, Probabilities
from common.errors import ShoalError
from trainer.classification.metrics import Confusion, measures

SETTINGS = {"dim": 10, "lr": 0.1, "epoch": 5, "wordNgrams": 2, "bucket": 2_000_000, "loss": "softmax", "verbose": 0}
"""Settings of the program's classification example, and its defaults for all others."""
_PREFIX = "__label__"
_REPEATS = 3
_LEAST = 1e-6
"""Lower bound of a probability, because the program's probabilities may be 0."""

Found = TypeVar("Found")


class Cost(NamedTuple):
    """Seconds of this process: CPU time of all threads, and wall time."""

    cpu: float
    wall: float

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.cpu - other.cpu, self.wall - other.wall)


class Trained(NamedTuple):
    """A model, the cost of the call, and the cost of its epochs."""

    model: Any
    call: Cost
    epochs: Cost


def train(file: Path, **settings: Any) -> Trained:
    """Train on a file of labelled texts, with SETTINGS and `settings`."""
    import fasttext  # of requirements-bench.txt

    arguments = {"input": str(file), **SETTINGS, **settings}
    without = [timed(lambda: fasttext.train_supervised(**{**arguments, "epoch": 0}))[1] for _ in range(_REPEATS)]
    model, call = timed(lambda: fasttext.train_supervised(**arguments))
    return Trained(model, call, call - Cost(*map(median, zip(*without, strict=True))))


def tune(file: Path, held_out: Path, seconds: int, **settings: Any) -> Trained:
    """Train on a file with the program's own search of settings, by the accuracy on a file of held-out rows.

    The search takes `seconds`, and the cost is that of the search. Raises ShoalError if no model was trained in time.
    """
    import fasttext  # of requirements-bench.txt

    search = {"autotuneValidationFile": str(held_out), "autotuneDuration": seconds, "verbose": 0}
    try:
        model, call = timed(lambda: fasttext.train_supervised(input=str(file), **search, **settings))
    except RuntimeError as error:
        raise ShoalError(f"fastText's autotune failed: {error}; give it more time with --autotune-seconds") from error
    return Trained(model, call, call)


def classify(model: Any, examples: Sequence[Example]) -> dict[str, float]:
    """Classify texts with a model, and return the measures of `evaluate`."""
    positive = f"{_PREFIX}2"

    def predict(texts: Sequence[str]) -> Probabilities:
        labels, probabilities = model.predict(list(texts))
        return np.array(
            [each if first == positive else 1 - each for (first,), (each,) in zip(labels, probabilities, strict=True)]
        )

    return evaluate(predict, examples)


def evaluate(predict: Predict, examples: Sequence[Example], threshold: float = 0.5) -> dict[str, float]:
    """Return the measures of a function's predicted probabilities, by name.

    They include the expected `calibration_error` in bins of a tenth, and the cost in microseconds a text: `predict_cpu`
    and `predict_wall`.
    """
    found, cost = timed(lambda: predict([example.text for example in examples]))
    found = found.astype(float).clip(_LEAST, 1 - _LEAST)
    labels = np.array([example.label for example in examples])
    said = found > threshold
    right = said == labels
    sure = np.where(said, found, 1 - found)
    bins = [(sure * 10).astype(int) == place for place in range(10)]
    cpu, wall = (1e6 * seconds / len(examples) for seconds in cost)
    return {
        **measures(Confusion.of(np.bincount(2 * labels + said, minlength=4).tolist())),
        "log_loss": float(-np.log(np.where(labels == 1, found, 1 - found)).mean()),
        "calibration_error": sum(abs(float((sure[each] - right[each]).sum())) for each in bins) / len(examples),
        "predict_cpu": cpu,
        "predict_wall": wall,
    }


def timed(call: Callable[[], Found]) -> tuple[Found, Cost]:
    """Return the result of a call, and its cost."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = call()
    return found, Cost(time.process_time() - cpu, time.perf_counter() - wall)
