"""Own rates: those of a rank's steps alone. The share of ideal is relative to them, so they must not be too low."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.played_clock import PlayedClock
from trainer import clock, rate_measurement
from trainer.classification.losses import Loss, Scale
from trainer.classification.models.classifier import Classifier
from trainer.classification.rows import TextRows
from trainer.classification.task import text_gradients
from trainer.clock import StepTimer
from trainer.computing import gradients
from trainer.computing.optimiser import Optimiser
from trainer.distributed.ranks import join_process_group
from trainer.options.optimisation_options import OptimisationOptions
from trainer.rate_measurement import measure_own_rates

SHARE = 16
SECONDS_A_ROW = 0.002
CLOCK = PlayedClock()


class Sleepy(Classifier):
    """Model that takes a known time for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 1)

    def classify(self, tokens: Tensor, lengths: Tensor, _keys: Tensor | None) -> Tensor:
        CLOCK.sleep(SECONDS_A_ROW * len(tokens))
        return self.embedding(tokens).sum((1, 2))[:, None] / lengths[:, None]


def rate(tmp_path, slowness: float, **seconds: float) -> float:
    labels = np.ones(50, np.uint8)
    tokens, lengths = np.ones((50, 3), np.uint16), np.full(50, 3, np.uint16)
    rows = TextRows(tokens=tokens, lengths=lengths, labels=labels, ratings=labels)
    loss = Loss(kind="bce", scale=Scale(0, 1, 1), positive_weight=1.0)
    compute = text_gradients(Sleepy(), rows, loss=loss, device=torch.device("cpu"), timer=StepTimer())
    compute.slowness = slowness
    with join_process_group(1):
        optimiser = Optimiser(compute.model, compute.model.tables, OptimisationOptions())
        (found,) = measure_own_rates(compute, optimiser, split=np.array([SHARE]), **seconds)
    return found


@pytest.fixture(autouse=True)
def played(monkeypatch):
    """Advance the time only while the model computes."""
    for module in (clock, gradients, rate_measurement):
        monkeypatch.setattr(module, "time", CLOCK)


@pytest.mark.parametrize(("slowness", "seconds"), [(1.0, 0.6), (2.0, 0.6), (1.0, 0.0)])
def test_the_own_rate_is_the_rows_per_second_of_its_steps_even_on_a_busy_machine(tmp_path, slowness, seconds):
    assert rate(tmp_path, slowness, seconds=seconds) == pytest.approx(1 / (SECONDS_A_ROW * slowness))
