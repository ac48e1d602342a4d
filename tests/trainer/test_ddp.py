"""Whole runs with --exchange ddp: the same losses as without, balanced by each rank's own time."""

from pathlib import Path

import pytest

from common.errors import TrainingError
from tests.trainer.test_training import LEARNING, finish, lines, step_losses, summary, weights
from trainer.config import configured

PLAIN = ("--epochs", "1", *LEARNING[2:])


@pytest.fixture(scope="module")
def own(launch, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("own")
    finish(launch(0, "-m", "trainer", "--data", dataset, "--output", output, *PLAIN))
    return output


@pytest.mark.soak
@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (2, ("--slow", "1:5")),
        (1, ("--clip-norm", "0.1")),
        (2, ("--balance", "0,1")),
    ],
)
def test_ddp_changes_neither_what_is_learnt_nor_what_the_balancer_sees(
    launch, dataset: Path, own: Path, tmp_path: Path, ranks: int, options: tuple[str, ...]
) -> None:
    finish(launch(ranks, "-m", "trainer", "--data", dataset, "--output", tmp_path, "--exchange=ddp", *PLAIN, *options))
    if "--clip-norm" not in options:
        assert step_losses(tmp_path) == pytest.approx(step_losses(own), abs=1e-5)
    splits = [line["split"] for line in lines(tmp_path, "step")]
    if "--slow" in options:
        assert splits[-2][0] > 2 * splits[-2][1]
    if "--balance" in options:
        assert {split[0] for split in splits} == {0}
    found = summary(tmp_path)
    assert all(phases["all_reduce"] > 0 for phases in found["profile"])
    whole = sum(each.nbytes for each in weights(tmp_path).values()) if ranks > 1 else 0
    assert whole <= found["bytes_a_step"] <= whole + 100  # and what ranks tell each other


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (
            {"model": "fasttext"},
            "--exchange ddp sends whole tables .*; leave it out, or take --model lstm or encoder or char-lstm$",
        ),
        ({"threads": 2}, "--threads is 2"),
    ],
)
def test_what_it_cannot_do_is_said_before_ranks_start(tmp_path: Path, options: dict[str, object], part: str) -> None:
    with pytest.raises(TrainingError, match=part):
        configured({"data": tmp_path, "output": tmp_path, "exchange": "ddp", **options})
