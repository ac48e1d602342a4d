"""The balanced Trainers for Hugging Face and Lightning have the same losses on unequal ranks as on one rank."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.soak  # each rank needs seconds to import the framework

SLOW = [1e-3, 4e-3]
KINDS = ("transformers", "lightning")


Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run(run_on_ranks) -> Run:
    def done(ranks: int, output: Path, **what: Any) -> dict[str, Any]:
        run_on_ranks(ranks, "tests/framework_program.py", json.dumps({"output": str(output), **what}))
        found: dict[str, Any] = json.loads((output / "found.json").read_text())
        return found

    return done


@pytest.fixture(scope="module")
def single_rank_losses(run, tmp_path_factory) -> Callable[[str], list[float]]:
    """Return a function that returns the losses of a run on one rank with a framework."""

    @functools.cache
    def losses(kind: str) -> list[float]:
        found: list[float] = run(1, tmp_path_factory.mktemp("single") / "one", by=kind)["losses"]
        return found

    return losses


@pytest.mark.parametrize("kind", KINDS)
def test_two_unequal_ranks_have_the_losses_of_one_and_split_rows_by_speed(run, single_rank_losses, kind, tmp_path):
    found = run(2, tmp_path / "two", slow=SLOW, by=kind)
    assert found["losses"] == pytest.approx(single_rank_losses(kind), abs=1e-5)
    assert len(found["losses"]) == 16
    assert found["shares"] == [13, 3]


@pytest.mark.parametrize(
    ("kind", "checkpoint", "ranks"), [("transformers", "checkpoint-11", 1), ("lightning", "step=11.ckpt", 2)]
)
def test_a_training_continues_within_an_epoch(run, single_rank_losses, kind, checkpoint, ranks, tmp_path):
    first = run(2, tmp_path / "first", slow=SLOW, stop_after=11, by=kind)
    resume = str(tmp_path / "first" / checkpoint)
    second = run(ranks, tmp_path / "second", resume=resume, workers=1, by=kind)
    assert len(first["losses"]) == 11
    assert second["losses"][-5:] == pytest.approx(single_rank_losses(kind)[-5:], abs=1e-5)


def test_a_last_batch_with_fewer_rows_than_ranks_is_refused(run, tmp_path):
    with pytest.raises(AssertionError, match=r"with 121 rows in batches of 20 the last batch has 1 rows, but 2 ranks"):
        run(2, tmp_path / "two", batch=20, by="transformers")
