"""Ranks whose weights differ by rounding are made equal."""

from pathlib import Path

import pytest

from tests.trainer.runs import finish, notes


@pytest.mark.soak
def test_ranks_that_round_otherwise_have_the_same_weights_after_each_epoch_and_that_is_said_once(
    launch, dataset: Path, tmp_path: Path
) -> None:
    arguments = ("--data", dataset, "--output", tmp_path, "--threads", "1", "--epochs", "2", "--global-batch", "64")
    finish(launch(2, Path(__file__).with_name("drifting.py"), *arguments))
    for epoch in range(2):
        first, second = ((tmp_path / f"{rank}-{epoch}").read_bytes() for rank in range(2))
        assert first == second
    (note,) = notes(tmp_path)
    told, _, then = note.removeprefix("the ranks' weights differed by up to ").partition(", ")
    assert 0 < float(told) < 1e-6
    assert then.endswith("all ranks took those of rank 0, as they do after each epoch")
