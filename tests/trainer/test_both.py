"""An LSTM and fastText's model together learn alike on one rank and on several."""

from pathlib import Path

import pytest
import torch

from tests.trainer.conftest import Launch
from tests.trainer.runs import finish, summary
from trainer.classification.labelling import Labeller
from trainer.classification.loading import load_model

LEARNING = ("--model", "both", "--buckets", "500", "--threads", "1", "--epochs", "10", "--lr", "0.02")


def trained(launch: Launch, data: Path, output: Path, *options: str, ranks: int = 0) -> dict[str, torch.Tensor]:
    """The weights that a run has learnt."""
    finish(launch(ranks, "-m", "trainer", "--data", data, "--output", output, *LEARNING, *options))
    found: dict[str, torch.Tensor] = load_model(output).classifier.state_dict()
    return found


@pytest.mark.soak
def test_unequal_ranks_learn_what_one_alone_learns(launch: Launch, dataset: Path, tmp_path: Path) -> None:
    alone = trained(launch, dataset, tmp_path / "alone")
    shared = trained(launch, dataset, tmp_path / "shared", "--balance", "3,1", ranks=2)
    for name, expected in alone.items():
        torch.testing.assert_close(shared[name], expected, rtol=1e-3, atol=1e-3)
    found = summary(tmp_path / "alone")
    assert found["accuracy"] > found["majority"] + 0.1
    good, bad = Labeller(load_model(tmp_path / "alone"))(["gooda goodb goodc", "bada badb"])
    assert (good.label, bad.label) == (1, 0)
