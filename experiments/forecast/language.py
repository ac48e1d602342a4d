"""How fast GPUs learn a language model: its operations a token, and the share of their peak that was measured.

An NVIDIA H200 was measured with four models (`make gpu PARTS=language`, docs/training.md). How much of its peak it
reached grows with the matrix product that a layer makes at each time of a row: the rows of a step times the square of
the units. Between the four it is interpolated. All else is assumed: that other GPUs reach the same share of their own
peaks, and that a sampled softmax reaches what the exact one does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from corpus.text import FIRST_WORD
from experiments.forecast.gpu_rates import GpuModel, GpuRate
from experiments.forecast.training import TrainingWork
from infra.catalog import Gpu
from trainer.balancing.speed import TimeModel
from trainer.config import TrainConfig

BYTES = 256
"""The vocabulary of a model of bytes."""
_OPERATIONS_A_WEIGHT = 6
"""A multiplication and an addition, forward, and twice that backward."""
_PEAK = 989.0
"""TFLOPS of an H200 in 16 bits; an H100 has the same."""
_OFF_MEASURED, _OFF_GUESSED = 0.25, 1.0
_EPOCHS = 6
"""Of a run without --epochs (trainer/pretraining/task.py)."""
_EVALUATED_TOKENS, _TESTED_TOKENS = 1 << 17, 1 << 18
"""Of an evaluation, at most (trainer/pretraining/data.py)."""
_HELD_OUT = 0.05
_EXPONENT, _OFFSET = 1.1, 2.7
"""Of Mandelbrot's law, by which words are frequent."""


@dataclass(frozen=True, kw_only=True)
class LanguageModel(GpuModel):
    """The layers of a language model, and what a step learns from."""

    ids: int
    """Words or bytes that can be predicted."""
    embedding: int
    hidden: int
    layers: int
    bptt: int
    directions: int = 1
    tied: bool = True
    """Whether the softmax has the embeddings as its weights, and the last layer their width."""
    samples: int = 0
    """Words of a sampled softmax; 0: it is exact."""
    gradient_bits: int = 32
    text_words: float = 200.0
    """Tokens of a text, of which some are evaluated."""

    @classmethod
    def of(cls, config: TrainConfig, unit: str, *, text_words: float | None = None) -> Self:
        """The model of a configuration, of tokens that are words by the rule `unit`, or bytes."""
        bytewise = unit == "bytes"
        assert config.embedding is not None
        return cls(
            ids=FIRST_WORD + (BYTES if bytewise else config.vocabulary),
            embedding=config.embedding,
            hidden=config.hidden,
            layers=config.layers,
            bptt=config.bptt,
            directions=1 + (config.direction == "both"),
            tied=(config.output_weights or ("own" if bytewise else "tied")) == "tied",
            samples=config.samples,
            gradient_bits=config.gradient_bits,
            text_words=text_words or (1000.0 if bytewise else cls.text_words),
        )

    @property
    def output_width(self) -> int:
        """The dimensions of the last layer's state."""
        return self.embedding if self.tied else self.hidden

    @property
    def lstm_weights(self) -> int:
        """Of all layers and directions, without biases."""
        widths = [self.embedding, *[self.hidden] * (self.layers - 1), self.output_width]
        one = sum(4 * width * (before + width) for before, width in pairwise(widths))
        return self.directions * one

    @property
    def operations(self) -> float:
        """Multiplications and additions of learning from a token."""
        compared = min(self.ids, self.samples + 1) if self.samples else self.ids
        softmax = self.directions * compared * self.output_width
        return _OPERATIONS_A_WEIGHT * (self.lstm_weights + softmax)

    def seconds(self, gpu: Gpu, rows: float) -> float:
        """Of a step of so many rows on a GPU."""
        reached = share_of_peak(rows * self.hidden**2) * peak(gpu) * 1e12
        return rows * self.bptt * self.operations / reached

    def tokens_per_second(self, gpu: Gpu, rows: int) -> float:
        """Of one GPU that learns from so many rows a step."""
        return rows * self.bptt / self.seconds(gpu, rows)

    def rates(self, gpus: Sequence[Gpu], global_batch: int) -> list[GpuRate]:
        """Each GPU's line through half and all of the rows that its peak would give it."""
        peaks = sum(map(peak, gpus))
        return [self._rate(gpu, max(2.0, global_batch * peak(gpu) / peaks)) for gpu in gpus]

    def _rate(self, gpu: Gpu, rows: float) -> GpuRate:
        half, whole = (self.seconds(gpu, each) for each in (rows / 2, rows))
        at = f"{share_of_peak(rows * self.hidden**2):.0%} of its {peak(gpu):g} TFLOPS"
        known = peak(gpu) == _PEAK
        return GpuRate(
            line=TimeModel(2 * half - whole, (whole - half) / (rows / 2)),
            off=_OFF_MEASURED if known else _OFF_GUESSED,
            source=f"{gpu.name}: {at}, as measured on an H200"
            if known
            else f"{gpu.name} not measured: {at}, as an H200",
        )

    def gradient_bytes(self, global_batch: int) -> float:
        """Bytes of the gradients that a rank sends in a step: of a sampled softmax only the touched words'."""
        table = float(self.ids)
        if self.samples:
            table = min(table, _distinct(self.ids, global_batch * self.bptt) + self.samples)
        sent = self.lstm_weights + table * self.embedding + (0 if self.tied else table * self.output_width)
        return sent * self.gradient_bits / 8

    def work(self, rows: int, epochs: int, global_batch: int, row_bytes: float) -> TrainingWork:
        """The work on a text of `rows` tokens of so many bytes; its rows are windows, those to evaluate are texts."""
        held_out = _HELD_OUT * rows / self.text_words
        windows = max(1, round(rows / self.bptt))
        return TrainingWork(
            rows=windows,
            validation=max(1, round(min(held_out, _EVALUATED_TOKENS / self.text_words))),
            test=max(1, round(min(held_out, _TESTED_TOKENS / self.text_words))),
            epochs=epochs,
            global_batch=global_batch,
            row_bytes=row_bytes * self.bptt,
        )


class _Measured(NamedTuple):
    """A model on one H200."""

    model: LanguageModel
    rows: int
    tokens_per_second: float


MEASURED = {
    "small": _Measured(LanguageModel(ids=30_002, embedding=256, hidden=512, layers=2, bptt=70), 128, 651_257),
    "medium": _Measured(LanguageModel(ids=30_002, embedding=400, hidden=1152, layers=3, bptt=70), 128, 370_627),
    "large": _Measured(LanguageModel(ids=30_002, embedding=512, hidden=2048, layers=3, bptt=128), 512, 500_256),
    "4,096 bytes": _Measured(
        LanguageModel(ids=258, embedding=64, hidden=4096, layers=1, bptt=256, tied=False), 512, 1_126_593
    ),
}
"""Tokens a second with rows of a step (benchmarks/results/gpu-language.log)."""

_SIZES = np.log([each.rows * each.model.hidden**2 for each in MEASURED.values()])
_SHARES = np.log([each.model.operations * each.tokens_per_second / (_PEAK * 1e12) for each in MEASURED.values()])


def peak(gpu: Gpu) -> float:
    """TFLOPS in the fastest precision that the trainer computes in."""
    return gpu.half_tflops or gpu.tflops


def share_of_peak(size: float) -> float:
    """The share that a GPU reaches with so many rows times units squared: below the smallest size that was measured it
    falls on as between the first two, above the largest it is that of the largest."""
    slope = float((_SHARES[1] - _SHARES[0]) / (_SIZES[1] - _SIZES[0]))
    below = min(0.0, math.log(size) - float(_SIZES[0]))
    return math.exp(float(np.interp(math.log(size), _SIZES, _SHARES)) + slope * below)


def language_epochs(config: TrainConfig) -> int:
    """Passes over the text."""
    return config.epochs or _EPOCHS


def _distinct(ids: int, drawn: int) -> float:
    """Words among so many of a text."""
    share = 1.0 / (np.arange(1, ids + 1) + _OFFSET) ** _EXPONENT
    return float(-np.expm1(-drawn * share / share.sum()).sum())
