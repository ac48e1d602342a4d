"""The loop knows no task: a task with two tables and no labels is trained, and split over ranks, like any other."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.conftest import Launch
from tests.trainer.runs import finish, summary
from trainer.classification.task import Classification
from trainer.embeddings.char_task import CharacterEmbedding
from trainer.embeddings.skipgram_task import SkipGramEmbedding
from trainer.registry import AUTO, CLASSIFIERS, MODELS
from trainer.task import task_class

PAIRS = ("-m", "tests.trainer.pairs", "--model", "pairs", "--data", "none", "--threads", "1", "--global-batch", "100")


def trained(launch: Launch, output: Path, ranks: int, *options: str) -> dict[str, Any]:
    finish(launch(ranks, *PAIRS, "--output", output, "--learning-rate", "0.2", "--word-rate", "1", *options))
    return summary(output)


def test_every_model_belongs_to_one_kind_of_task() -> None:
    of_texts = dict.fromkeys((AUTO, *CLASSIFIERS), Classification)
    of_words = {"skipgram": SkipGramEmbedding, "char-lstm": CharacterEmbedding}
    assert {name: task_class(name) for name in MODELS} == {**of_texts, **of_words}


@pytest.mark.soak
def test_a_task_with_two_tables_learns_the_same_on_one_rank_and_on_two(launch: Launch, tmp_path: Path) -> None:
    alone = trained(launch, tmp_path / "1", 1, "--epochs", "6")
    together = trained(launch, tmp_path / "2", 2, "--epochs", "6", "--balance", "3,1")
    assert alone["loss"] < 0.7  # twice the logarithm of 2, 1.4, is that of who knows nothing
    assert alone["rows_seen"] == together["rows_seen"] == 6 * alone["rows"]
    assert together["loss"] == pytest.approx(alone["loss"], rel=1e-4)
    tables = [torch.load(tmp_path / ranks / "tables.pt", weights_only=True) for ranks in ("1", "2")]
    for name, table in tables[0].items():
        assert torch.allclose(table, tables[1][name], atol=1e-4)
