"""The balanced Trainers for Hugging Face and Lightning have the same losses on unequal ranks as on one rank."""

import functools

import pytest

pytestmark = pytest.mark.soak  # each rank needs seconds to import the framework

SLOW = [1e-3, 4e-3]
KINDS = ("transformers", "lightning")


@pytest.fixture(scope="module")
def train(train):
    return functools.partial(train, program="framework_program")


@pytest.fixture(scope="module")
def single_rank_losses(train, tmp_path_factory):
    """Return a function that returns the losses of a run on one rank with a framework."""
    return functools.cache(lambda kind: train(1, tmp_path_factory.mktemp("single") / "one", by=kind)["losses"])


@pytest.mark.parametrize("kind", KINDS)
def test_two_unequal_ranks_have_the_losses_of_one_and_split_rows_by_speed(train, single_rank_losses, kind, tmp_path):
    result = train(2, tmp_path / "two", slow=SLOW, by=kind)
    assert result["losses"] == pytest.approx(single_rank_losses(kind), abs=1e-5)
    assert len(result["losses"]) == 16
    assert result["shares"] == [13, 3]


@pytest.mark.parametrize(
    ("kind", "checkpoint", "ranks"), [("transformers", "checkpoint-11", 1), ("lightning", "step=11.ckpt", 2)]
)
def test_a_training_continues_within_an_epoch(train, single_rank_losses, kind, checkpoint, ranks, tmp_path):
    first = train(2, tmp_path / "first", slow=SLOW, stop_after=11, by=kind)
    resume = str(tmp_path / "first" / checkpoint)
    second = train(ranks, tmp_path / "second", resume=resume, workers=1, by=kind)
    assert len(first["losses"]) == 11
    assert second["losses"][-5:] == pytest.approx(single_rank_losses(kind)[-5:], abs=1e-5)


def test_a_last_batch_with_fewer_rows_than_ranks_is_refused(train, tmp_path):
    with pytest.raises(AssertionError, match="the last batch has 1 rows"):
        train(2, tmp_path / "two", batch=20, by="transformers")
