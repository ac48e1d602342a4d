"""How fast GPUs train that nobody has measured: by the reference's two GPUs, and the data sheets of others.

The reference's model on an M60 and a K80 is all that is known. Other GPUs are taken to be faster in proportion to their
TFLOPS, and other models to be slower in proportion to their operations. Neither is right for a small LSTM, which waits
for memory and for the start of kernels: so the range is a factor of two to both sides, and every user is told.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments import reference
from experiments.forecast.communication import gradient_bytes
from experiments.forecast.training import TrainingWork, work_on
from infra import catalog
from infra.catalog import Gpu
from trainer.balancing.speed import TimeModel

_OFF_MEASURED, _OFF_GUESSED = 0.25, 1.0
_REFERENCE_GPUS: Mapping[str, str] = {"M60": "g3.4xlarge", "K80": "p2.xlarge"}
_WORDS = 100
"""Of a row of the reference."""
_STEPS_AND_BACK = 3
"""Operations of a step to those of its forward pass: backward takes twice as many."""


@dataclass(frozen=True, kw_only=True)
class GpuRate:
    """What a GPU needs for a step of so many rows."""

    line: TimeModel
    off: float
    """By what share it is expected to be off."""
    source: str
    """Where it is from, for the user."""


class GpuModel(ABC):
    """A model whose time on GPUs follows from the catalogue."""

    @abstractmethod
    def rates(self, gpus: Sequence[Gpu], global_batch: int) -> list[GpuRate]:
        """Of each GPU, in steps that all of them make together."""

    @abstractmethod
    def gradient_bytes(self, global_batch: int) -> float:
        """That a rank sends in a step."""

    @abstractmethod
    def work(self, rows: int, epochs: int, global_batch: int, row_bytes: float) -> TrainingWork:
        """The training on `rows` of its data."""


def lstm_operations(*, embedding: int, hidden: int, layers: int, words: float = _WORDS) -> float:
    """Operations (multiplications and additions) of a step for one row of so many words."""
    widths = [embedding, *[hidden] * (layers - 1)]
    return _STEPS_AND_BACK * words * sum(2 * 4 * hidden * (width + hidden) for width in widths)


def reference_operations(words: float = _WORDS) -> float:
    """Those of the reference's model."""
    return lstm_operations(embedding=100, hidden=32, layers=2, words=words)


REFERENCE_OPERATIONS = reference_operations()


@dataclass(frozen=True)
class LstmClassifier(GpuModel):
    """An LSTM that classifies texts; the gradients it sends are taken to be as large as the reference's."""

    operations: float = REFERENCE_OPERATIONS
    """Of a row."""

    def rates(self, gpus: Sequence[Gpu], global_batch: int) -> list[GpuRate]:  # noqa: ARG002
        """By the reference's GPUs."""
        return [rate_by_catalogue(gpu, self.operations) for gpu in gpus]

    def gradient_bytes(self, global_batch: int) -> float:
        """Those of the reference's model."""
        return gradient_bytes(global_batch)

    def work(self, rows: int, epochs: int, global_batch: int, row_bytes: float) -> TrainingWork:
        """On a dataset of `rows` rows."""
        return work_on(rows, epochs, global_batch, row_bytes)


REFERENCE_MODEL = LstmClassifier()


def rate_by_catalogue(gpu: Gpu, operations: float) -> GpuRate:
    """The rate of a GPU of the catalogue for a model of so many operations a row."""
    slower = operations / REFERENCE_OPERATIONS
    known = {name: _reference_rate(own) for name, own in _REFERENCE_GPUS.items()}
    if gpu.name in known:
        source = f"the reference's own time on one {gpu.name}"
        return GpuRate(line=TimeModel(0.0, slower / known[gpu.name]), off=_OFF_MEASURED, source=source)
    per_tflops = math.exp(
        sum(math.log(rate / _tflops(_REFERENCE_GPUS[name])) for name, rate in known.items()) / len(known)
    )
    return GpuRate(
        line=TimeModel(0.0, slower / (per_tflops * gpu.tflops)),
        off=_OFF_GUESSED,
        source=f"{gpu.name} not measured: {gpu.tflops:g} TFLOPS at the reference's rows a TFLOPS",
    )


def _reference_rate(instance_type: str) -> float:
    """Rows a second of the reference's training on one GPU of this type."""
    (alone,) = [each for each in reference.TRAININGS if each.gpus == {instance_type: 1}]
    return reference.TRAINED_ROWS * reference.EPOCHS / alone.seconds


def _tflops(instance_type: str) -> float:
    gpu = catalog.find(instance_type).gpu
    assert gpu is not None
    return gpu.tflops
