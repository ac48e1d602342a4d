"""The learning rate over a run."""

from pathlib import Path

import pytest

from trainer.config import TrainConfig
from trainer.optimise import learning_rate


def rates(steps: int, batch: int = 256, **changes: object) -> list[float]:
    config = TrainConfig(data=Path("d"), output=Path("o"), learning_rate=1.0, **changes)
    return [learning_rate(config, step, steps, batch) for step in range(steps)]


def test_it_rises_linearly_then_falls_along_a_cosine() -> None:
    found = rates(100, warm_up=0.1)
    assert found[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert found[10] == 1.0
    assert found[55] == pytest.approx(0.5)
    assert 0 < found[99] < 0.01
    assert found[10:] == sorted(found[10:], reverse=True)


def test_constant_means_constant() -> None:
    assert set(rates(20, schedule="constant", warm_up=0.0)) == {1.0}


def test_a_single_step_has_a_rate() -> None:
    assert rates(1)[0] > 0


def test_it_grows_with_the_global_batch() -> None:
    for scaling, factor in (("none", 1.0), ("root", 4.0), ("linear", 16.0)):
        assert rates(50, 4096, rate_scaling=scaling) == pytest.approx([factor * rate for rate in rates(50)])
    assert max(rates(50, 64, rate_scaling="root")) == 0.5
