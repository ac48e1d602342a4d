"""The Trainers of Hugging Face's library and of Lightning, balanced over ranks of unequal speed, learn what one rank
learns."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.soak  # each rank imports a library for seconds

SLOW = [1e-3, 4e-3]
KINDS = ("transformers", "lightning")


Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run(run_on_ranks: Callable[..., str]) -> Run:
    """run(ranks, output, ...): what the program has done on so many ranks."""

    def done(ranks: int, output: Path, **what: Any) -> dict[str, Any]:
        run_on_ranks(ranks, "tests/framework_program.py", json.dumps({"output": str(output), **what}))
        found: dict[str, Any] = json.loads((output / "found.json").read_text())
        return found

    return done


@pytest.fixture(scope="module")
def alone(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[float]]:
    """What one rank learns, of a kind."""

    @functools.cache
    def losses(kind: str) -> list[float]:
        found: list[float] = run(1, tmp_path_factory.mktemp("alone") / "one", by=kind)["losses"]
        return found

    return losses


@pytest.mark.parametrize("kind", KINDS)
def test_two_unequal_ranks_learn_what_one_learns_and_share_by_their_speed(
    run: Run, alone: Callable[[str], list[float]], kind: str, tmp_path: Path
) -> None:
    found = run(2, tmp_path / "two", slow=SLOW, by=kind)
    assert found["losses"] == pytest.approx(alone(kind), abs=1e-5)
    assert len(found["losses"]) == 16
    assert found["shares"] == [13, 3]


@pytest.mark.parametrize(
    ("kind", "checkpoint", "ranks"), [("transformers", "checkpoint-11", 1), ("lightning", "step=11.ckpt", 2)]
)
def test_a_training_continues_within_an_epoch(
    run: Run, alone: Callable[[str], list[float]], kind: str, checkpoint: str, ranks: int, tmp_path: Path
) -> None:
    first = run(2, tmp_path / "first", slow=SLOW, stop_after=11, by=kind)
    resume = str(tmp_path / "first" / checkpoint)
    second = run(ranks, tmp_path / "second", resume=resume, workers=1, by=kind)
    assert len(first["losses"]) == 11
    assert second["losses"][-5:] == pytest.approx(alone(kind)[-5:], abs=1e-5)


def test_a_last_batch_with_fewer_rows_than_ranks_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"the last of the batches of 20 has 1 of 121 rows, and 2 ranks need one"):
        run(2, tmp_path / "two", batch=20, by="transformers")
