"""How long the runs of an experiment will take, by those before them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bootstrap.experiments.running import _time_left


@pytest.mark.parametrize(
    ("took", "predicted", "said"),
    [
        ({}, {}, ""),
        ({}, {"slow": 600.0}, "; about 30 min left"),  # the two others as long as the one that is known
        ({"fast": [60.0, 180.0]}, {"slow": 600.0}, "; about 18 min left"),
        ({"fast": [1.0], "slow": [1.0], "new": [1.0]}, {}, "; about 1 min left"),
    ],
)
def test_runs_without_a_time_take_the_mean_of_the_others(
    took: dict[str, list[float]], predicted: dict[str, float], said: str
) -> None:
    def price(run: Any) -> Any:
        seconds = predicted.get(run.arm.name)
        return SimpleNamespace(seconds=None if seconds is None else SimpleNamespace(middle=seconds))

    runs = [SimpleNamespace(arm=SimpleNamespace(name=name), folder=Path(name)) for name in ("fast", "slow", "new")]
    assert _time_left(cast(Any, runs), took, cast(Any, SimpleNamespace(price=price))) == said
