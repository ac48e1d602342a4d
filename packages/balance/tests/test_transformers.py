"""The balanced Trainer for Hugging Face has the same losses on unequal ranks as on one rank."""

import functools

import pytest

pytestmark = pytest.mark.soak  # each rank needs seconds to import transformers

SLOW = [1e-3, 4e-3]


@pytest.fixture(scope="module")
def train(train):
    return functools.partial(train, program="transformers_program")


@pytest.fixture(scope="module")
def single_rank_losses(train, tmp_path_factory):
    return train(1, tmp_path_factory.mktemp("single") / "one")["losses"]


def test_two_unequal_ranks_have_the_losses_of_one_and_split_rows_by_speed(train, single_rank_losses, tmp_path):
    result = train(2, tmp_path / "two", slow=SLOW)
    assert result["losses"] == pytest.approx(single_rank_losses, abs=1e-5)
    assert len(result["losses"]) == 16
    assert result["shares"] == [13, 3]


def test_a_training_continues_within_an_epoch(train, single_rank_losses, tmp_path):
    first = train(2, tmp_path / "first", slow=SLOW, stop_after=11)
    second = train(1, tmp_path / "second", resume=str(tmp_path / "first" / "checkpoint-11"))
    assert len(first["losses"]) == 11
    assert second["losses"][-5:] == pytest.approx(single_rank_losses[-5:], abs=1e-5)


def test_a_last_batch_with_fewer_rows_than_ranks_is_refused(train, tmp_path):
    with pytest.raises(AssertionError, match="the last batch has 1 rows"):
        train(2, tmp_path / "two", batch=20)
