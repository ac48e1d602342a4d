"""fastText's model and the linear one learn alike on one rank and on several, with each optimiser."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from tests.trainer.conftest import Launch
from tests.trainer.runs import finish, run_here, summary, train_here, weights
from trainer.classification import task
from trainer.classification.data import WeightedNgrams, load_data
from trainer.classification.labelling import Labeller
from trainer.classification.loading import load_model
from trainer.config import configured
from trainer.distributed.ranks import Ranks
from trainer.options import classifier_options

LEARNING = ("--model", "fasttext", "--buckets", "500", "--threads", "1")
STEPS = ("--epochs", "6", "--learning-rate", "0.2")


def trained(launch: Launch, data: Path, output: Path, *options: str | Path, ranks: int = 2) -> dict[str, Any]:
    """The summary of a run on ranks."""
    finish(launch(ranks, "-m", "trainer", "--data", data, "--output", output, *LEARNING, *options))
    return summary(output)


@pytest.fixture(scope="module")
def alone(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("alone")
    train_here(output, "--data", texts, *LEARNING, *STEPS)
    return output


def test_it_learns_and_its_model_labels_texts_by_its_own_rule_of_words(alone: Path) -> None:
    found = summary(alone)
    assert found["accuracy"] > found["majority"] + 0.1
    model = load_model(alone)
    assert (model.words, model.row_length) == ("tokens", None)
    assert model.settings == {"words": 62, "embedding": 10, "ngrams": 2, "buckets": 500, "dropout": 0.5, "outputs": 5}
    good, bad, unread = Labeller(model)(["GOODA, goodb goodc.", "bada badb", '"; :'])
    assert (good.label, bad.label, unread.label) == (1, 0, None)


@pytest.mark.slow
@pytest.mark.parametrize("options", [STEPS, ("--model", "linear")])
def test_unequal_ranks_learn_what_one_alone_learns(
    launch: Launch, texts: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    alone = train_here(tmp_path / "1", "--data", texts, *LEARNING, *options)
    found = trained(launch, texts, tmp_path / "2", *options, "--balance", "3,1")
    assert found["rows_of_ranks"][0] > 2 * found["rows_of_ranks"][1]
    assert alone["accuracy"] > alone["majority"] + 0.1
    for name, expected in weights(tmp_path / "1").items():
        torch.testing.assert_close(weights(tmp_path / "2")[name], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "words", "batch"),
    [
        ({"preset": "fasttext", "epochs": 1}, 30, 192),
        ({"preset": "fasttext"}, 1, 64),
        ({"preset": "fasttext", "global_batch": 80}, 30, 80),
        ({"preset": "fasttext", "rank_batch": 40}, 30, None),
        ({"model": "fasttext"}, 30, None),
        ({"model": "lstm", "optimiser": "sgd"}, 30, None),
    ],
)
def test_by_sgd_a_step_has_more_of_short_texts_unless_its_rows_are_given(
    texts: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: int, batch: int | None
) -> None:
    monkeypatch.setattr(classifier_options, "_SHORT_TEXTS", words)
    config = configured({"data": texts, "output": texts.parent, **options})
    ranks = cast("Ranks", SimpleNamespace(device=torch.device("cpu")))
    assert task.Classification.resolve_config(config, ranks, load_data(texts))[0].global_batch == batch


def test_word_dropout_is_refused_for_a_model_that_reads_whole_texts(texts: Path, tmp_path: Path) -> None:
    status, errors = run_here("--data", texts, "--output", tmp_path, *LEARNING, "--word-dropout", "0.2")
    assert status == 1
    assert "--word-dropout is 0.2" in errors


@pytest.mark.parametrize(
    ("model", "device", "rows", "batch"),
    [
        ("linear", "cpu", 2000, 20),
        ("linear", "cpu", 150, 8),
        ("linear", "cuda", 1_000_000, 4096),
        ("lstm", "cuda", 150_000, 1500),
        ("lstm", "cuda", 2000, 256),
        ("lstm", "cuda", 21_300_000, 16_384),
        ("lstm", "cpu", 150_000, None),
    ],
)
def test_a_step_of_a_linear_model_and_of_an_lstm_on_gpus_has_a_hundredth_of_the_rows(
    texts: Path, monkeypatch: pytest.MonkeyPatch, model: str, device: str, rows: int, batch: int | None
) -> None:
    data, ranks = load_data(texts), cast("Ranks", SimpleNamespace(device=torch.device(device)))
    monkeypatch.setattr(type(data.training), "__len__", lambda _: rows)
    monkeypatch.setattr(task, "fitted_ngrams", lambda *_, **__: WeightedNgrams(np.zeros(1, np.int64), np.zeros(1), 1))
    buckets = {"buckets": 9} if model == "linear" else {}
    config = configured({"data": texts, "output": texts.parent, "model": model, **buckets})
    assert task.Classification.resolve_config(config, ranks, data)[0].global_batch == batch


def test_rows_of_one_array_of_words_have_one_copy_on_the_device(texts: Path) -> None:
    ranks = cast("Ranks", SimpleNamespace(device=torch.device("cpu")))
    config = configured({"data": texts, "output": texts.parent, "rows_in": "device"})
    data = task.Classification.load(config, ranks, memory=0, stop=lambda: False)
    assert data.training.device_tokens is not None
    assert data.validation.device_tokens is data.training.device_tokens
    assert data.training[:3].device_tokens is data.training.device_tokens
