"""One rank's own part of a step: forward and backward over its share of the global batch.

The easy mistake is to weigh a share by itself. A rank's loss is the *sum* over its rows divided by the rows of the
whole global batch; summed over ranks (exchange.py) it is the mean over the global batch, however unequal the shares.
Class weights scale the rows' losses and leave that divisor alone: it counts rows, not weights. A rank without
rows computes nothing and contributes zero.

A share that does not fit into a GPU's memory is computed in pieces, whose gradients add up to the same.
"""

import time

import torch
from torch import Tensor

from trainer import dropout
from trainer.clock import BACKWARD, FORWARD, ROWS, SLOWED, Laps
from trainer.data import Rows
from trainer.errors import RankError
from trainer.losses import Loss
from trainer.models.classifier import Classifier
from trainer.order import IntArray
from trainer.precision import loss_scale


class Compute:
    """Computes shares with one model on one device.

    `seed`: of dropout. `laps` are told the phases; who makes them begins the steps.
    """

    def __init__(
        self,
        model: Classifier,
        rows: Rows,
        *,
        loss: Loss,
        device: torch.device,
        seed: int = 0,
        laps: Laps,
    ) -> None:
        self._model = model
        self._rows = rows
        self._device = device
        self._seed = seed
        self.fitting = 0
        """Rows of a piece, since a share did not fit into memory; 0: all that come."""
        self._loss = loss
        self._laps = laps

    def __call__(self, numbers: IntArray, of: int, step: int, slowness: float = 1.0) -> Tensor:
        """Make the model's gradients those of these rows (n,) of a global batch of `of` rows; n may be 0.

        The gradients have to be zero, or None, before. `slowness`: sleep until it took so many times its own time.
        Returns this share's part of the global batch's mean loss, a
        scalar still on the device. Raises RankError when not even one row fits into memory.
        """
        start = time.perf_counter()
        while True:
            try:
                loss = self._in_pieces(numbers, of, step)
                break
            except torch.OutOfMemoryError:
                before = min(self.fitting or len(numbers), len(numbers))
            self._take_less(before)
        if slowness > 1.0:
            time.sleep((slowness - 1.0) * (time.perf_counter() - start))
            self._laps.end_of(SLOWED)
        return loss

    def _in_pieces(self, numbers: IntArray, of: int, step: int) -> Tensor:
        loss = torch.zeros((), device=self._device, dtype=self._model.embedding.weight.dtype)
        size = self.fitting or max(1, len(numbers))
        scale = loss_scale(self._model.precision, of)
        for start in range(0, len(numbers), size):
            loss += self._piece(numbers[start : start + size], of, step, scale)
        if scale != 1.0:
            for parameter in self._model.parameters():
                if parameter.grad is not None:
                    parameter.grad /= scale
        return loss

    def _piece(self, numbers: IntArray, of: int, step: int, scale: float) -> Tensor:
        batch = self._rows.batch(numbers, self._device)
        keys = torch.from_numpy(dropout.keys(self._seed, step, batch.numbers)).to(self._device, non_blocking=True)
        self._laps.end_of(ROWS)
        outputs = self._model(batch.tokens, batch.lengths, keys)  # (n, outputs)
        loss = self._loss.sum(outputs, batch.labels, batch.ratings) / of
        self._laps.end_of(FORWARD)
        (loss * scale).backward()  # type: ignore[no-untyped-call]
        self._laps.end_of(BACKWARD)
        return loss.detach()

    def _take_less(self, rows: int) -> None:
        """Compute in pieces of half of `rows`, which did not fit, from now on; and drop what was begun."""
        if rows <= 1:
            raise RankError(
                f"not one row fits into the memory of {self._device}; take a smaller model, or end what else runs there"
            )
        self.fitting = (rows + 1) // 2
        self._model.zero_grad()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
