"""One rank's own part of a step: forward and backward over its share of the global batch, timed.

The easy mistake is to weigh a share by itself. A rank's loss is the *sum* over its rows divided by the rows of the
whole global batch; summed over ranks (exchange.py) it is the mean over the global batch, however unequal the shares.
Class weights scale the rows' losses and leave that divisor alone: it counts rows, not weights. A rank without
rows computes nothing and contributes zero.
"""

import time

import torch
from torch import Tensor
from torch.nn import functional as F

from trainer.data import Rows
from trainer.models.classifier import Classifier
from trainer.order import IntArray


class Compute:
    """Computes shares with one model on one device.

    `slowness`: sleep after each share until it took this many times its own time.
    """

    def __init__(
        self, model: Classifier, rows: Rows, *, positive_weight: float, device: torch.device, slowness: float = 1.0
    ) -> None:
        self._model = model
        self._rows = rows
        self._device = device
        self._slowness = slowness
        dtype = model.embedding.weight.dtype
        self._positive_weight = torch.tensor(positive_weight, dtype=dtype, device=device)
        self._clock = _GPUClock() if device.type == "cuda" and slowness == 1.0 else _CPUClock()

    def __call__(self, numbers: IntArray, of: int) -> Tensor:
        """Add the gradients of these rows (n,) of a global batch of `of` rows to the model's; n may be 0.

        Returns this share's part of the global batch's mean loss, a scalar still on the device.
        """
        self._clock.start()
        if len(numbers):
            batch = self._rows.batch(numbers, self._device)
            logits = self._model(batch.tokens, batch.lengths)  # (n,)
            loss = (
                F.binary_cross_entropy_with_logits(
                    logits, batch.labels.to(logits.dtype), pos_weight=self._positive_weight, reduction="sum"
                )
                / of
            )
            loss.backward()  # type: ignore[no-untyped-call]
            part = loss.detach()
        else:
            part = torch.zeros((), device=self._device, dtype=self._positive_weight.dtype)
        if self._slowness > 1.0:
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)
            time.sleep((self._slowness - 1.0) * self._clock.elapsed())
        self._clock.stop(len(numbers))
        return part

    def timing(self) -> tuple[int, float]:
        """Rows and seconds of the latest share whose time is known; (0, 0.0) before there is one.

        On a CPU that is the share just computed. On a GPU it is the one before: asking for the newest would make
        the host wait for the device, at every step.
        """
        return self._clock.timing()


class _CPUClock:
    def __init__(self) -> None:
        self._timing = (0, 0.0)

    def start(self) -> None:
        self._started = time.perf_counter()

    def elapsed(self) -> float:
        return time.perf_counter() - self._started

    def stop(self, rows: int) -> None:
        self._timing = (rows, self.elapsed())

    def timing(self) -> tuple[int, float]:
        return self._timing


class _GPUClock(_CPUClock):
    """Times on the device's own clock, by events in its queue of work."""

    def __init__(self) -> None:
        super().__init__()
        self._pending: list[tuple[int, torch.cuda.Event, torch.cuda.Event]] = []

    def start(self) -> None:
        self._begin = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._begin.record()

    def stop(self, rows: int) -> None:
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end.record()
        self._pending.append((rows, self._begin, end))

    def timing(self) -> tuple[int, float]:
        if len(self._pending) > 1:
            rows, begin, end = self._pending.pop(0)
            end.synchronize()
            self._timing = (rows, begin.elapsed_time(end) / 1000)
        return self._timing
