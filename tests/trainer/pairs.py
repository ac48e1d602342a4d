"""A program for ranks: the trainer, with one more kind of task, which has two tables and no labels.

As word embeddings do (Mikolov et al. 2013), it learns which of two numbers go together, by one other number for each.
"""

# ruff: noqa: ARG002, ARG004, E402

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from trainer import registry

registry.MODELS["pairs"] = registry.Model(about="pairs", task=("tests.trainer.pairs", "Pairs"))  # type: ignore[index]

from trainer.__main__ import main
from trainer.balancing.split import Lengths
from trainer.clock import ROWS, StepTimer
from trainer.computing.gradients import GradientComputer
from trainer.config import TrainConfig
from trainer.distributed.ranks import Ranks
from trainer.order import IntArray
from trainer.task import TEST, TRAINING, VALIDATION, Task

NUMBERS, WIDTH = 1000, 8


@dataclass(frozen=True)
class Triples:
    """By part (rows, 3): a number, one that goes with it, and one that does not."""

    parts: Mapping[str, IntArray]
    digest: str = "0" * 32

    @property
    def sizes(self) -> dict[str, int]:
        return {part: len(rows) for part, rows in self.parts.items()}


class Tables(nn.Module):
    """A vector for each number as the first of a pair, and one as the second."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(NUMBERS, WIDTH), nn.Embedding(NUMBERS, WIDTH)
        for table in self.parameters():
            nn.init.normal_(table, std=0.1)

    def forward(self, rows: Tensor) -> Tensor:
        """The sum of the losses of rows (n, 3)."""
        first, other = self.first(rows[:, 0])[:, None], self.second(rows[:, 1:])  # (n, 1, WIDTH), (n, 2, WIDTH)
        goes_together = torch.tensor([1.0, 0.0]).expand(len(rows), 2)
        return F.binary_cross_entropy_with_logits((first * other).sum(2), goes_together, reduction="sum")


class Pairs(Task[Triples]):
    @staticmethod
    def load(config: TrainConfig, ranks: Ranks, *, memory: int, stop: Callable[[], bool]) -> Triples:
        chance = np.random.default_rng(0)
        numbers = chance.integers(0, 20, 2200)
        rows = np.stack([numbers, (numbers + 1) % 20, chance.integers(0, 20, 2200)], axis=1)
        return Triples({TRAINING: rows[200:], VALIDATION: rows[:100], TEST: rows[100:200]})

    def __init__(self, config: TrainConfig, ranks: Ranks, data: Triples) -> None:
        self._ranks, self._data = ranks, data
        self.model, self.precision = Tables(), "float32"
        self.tables = (self.model.first.weight, self.model.second.weight)

    def gradient_computer(self, timer: StepTimer) -> GradientComputer:
        def loss_of(model: nn.Module, numbers: IntArray, step: int, timer: StepTimer) -> Tensor:
            rows = torch.from_numpy(self._data.parts[TRAINING][numbers])
            timer.end_phase(ROWS)
            return model(rows)

        rows = len(self._data.parts[TRAINING])
        return GradientComputer(self.model, loss_of, rows=rows, device=self._ranks.device, timer=timer)

    def lengths(self, rows: IntArray) -> Lengths:
        return np.ones(len(rows), dtype=np.uint16)

    def touched_rows(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        triples = self._data.parts[TRAINING][rows]
        return np.unique(triples[:, 0]), np.unique(triples[:, 1:])

    def evaluate(self, part: str, *, split: IntArray, stop: Callable[[], bool]) -> dict[str, float] | None:
        end = int(split[: self._ranks.rank + 1].sum())
        with torch.inference_mode():
            loss = self.model(
                torch.from_numpy(self._data.parts[part][end - int(split[self._ranks.rank]) : end])
            ).double()
        dist.all_reduce(loss)
        return {"loss": float(loss) / int(split.sum())}

    def summary_measures(self, tested: Mapping[str, float] | None) -> dict[str, float | None]:
        return {"loss": tested["loss"] if tested else None}

    def summary_settings(self) -> dict[str, Any]:
        return {"precision": self.precision}

    def save(self, output: Path, *, epoch: int, tested: Mapping[str, float]) -> None:
        torch.save(self.model.state_dict(), output / "tables.pt")


if __name__ == "__main__":
    status = main()
    if status:
        os._exit(status)
