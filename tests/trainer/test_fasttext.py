"""fastText's model and the linear model learn the same on one rank and on several, with each optimiser."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.trainer.runs import finish, summary, train_here, weights
from trainer.classification import task
from trainer.classification.data import load_data, place_parts
from trainer.classification.labelling import Labeller
from trainer.classification.model_folder import load_model
from trainer.classification.rows import RaggedRows
from trainer.config import configured
from trainer.registry import Workload

LEARNING = ("--model", "fasttext", "--buckets", "500", "--threads", "1")
STEPS = ("--epochs", "6", "--learning-rate", "0.2")


@pytest.fixture(scope="module")
def alone(texts, tmp_path_factory):
    output = tmp_path_factory.mktemp("alone")
    train_here(output, "--data", texts, *LEARNING, *STEPS)
    return output


def test_the_model_learns_and_labels_texts_by_its_tokenisation_rule(alone):
    found = summary(alone)
    assert found["accuracy"] > found["majority"] + 0.1
    model = load_model(alone)
    assert (model.words, model.row_length) == ("tokens", None)
    assert model.settings == {"words": 62, "embedding": 10, "ngrams": 2, "buckets": 500, "dropout": 0.5, "outputs": 5}
    good, bad, unread = Labeller(model)(["GOODA, goodb goodc.", "bada badb", '"; :'])
    assert (good.label, bad.label, unread.label) == (1, 0, None)


@pytest.mark.slow
@pytest.mark.parametrize("options", [STEPS, ("--model", "linear")])
def test_unequal_ranks_learn_the_same_as_one(launch, texts, tmp_path, options):
    alone = train_here(tmp_path / "1", "--data", texts, *LEARNING, *options)
    places = ("--data", texts, "--output", tmp_path / "2")
    finish(launch(2, "-m", "trainer", *places, *LEARNING, *options, "--balance", "3,1"))
    first, second = summary(tmp_path / "2")["rows_of_ranks"]
    assert first > 2 * second
    assert alone["accuracy"] > alone["majority"] + 0.1
    for name, expected in weights(tmp_path / "1").items():
        torch.testing.assert_close(weights(tmp_path / "2")[name], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "size", "batch"),
    [
        ({"preset": "fasttext"}, {"words": 19}, 192),
        ({"preset": "fasttext"}, {"words": 20}, 64),
        ({"preset": "fasttext", "global_batch": 80}, {"words": 9}, 80),
        ({"preset": "fasttext", "rank_batch": 40}, {"words": 9}, None),
        ({"model": "fasttext"}, {"words": 9}, None),
        ({"model": "linear"}, {"rows": 2000}, 20),
        ({"model": "linear"}, {"rows": 150}, 8),
        ({"model": "linear"}, {"rows": 1_000_000, "on_gpus": True}, 4096),
        ({"model": "lstm"}, {"rows": 150_000, "on_gpus": True}, 1500),
        ({"model": "lstm"}, {"rows": 150_000}, None),
    ],
)
def test_the_default_batch_size_depends_on_the_model_and_its_texts(options, size, batch):
    config = configured({"data": Path("d"), "output": Path("o"), **options})
    assert config.with_step_rows(Workload(**{"on_gpus": False, **size})).optimisation.global_batch == batch


@pytest.mark.parametrize(
    ("device", "options", "batch"),
    [
        ("cpu", {"preset": "fasttext"}, 192),
        ("cuda", {"model": "lstm"}, 256),
        ("cpu", {"model": "linear", "buckets": 9}, 19),
    ],
)
def test_the_default_batch_size_depends_on_the_device_and_the_training_rows(texts, device, options, batch, monkeypatch):
    monkeypatch.setattr(task, "FEW_ROWS", 0)
    ranks = SimpleNamespace(device=torch.device(device))
    config = configured({"data": texts, "output": texts.parent, **options})
    assert task.Classification.resolve_config(config, ranks, load_data(texts))[0].optimisation.global_batch == batch


def test_parts_of_one_array_share_one_copy_on_the_device(texts, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (1 << 40, 1 << 40))
    monkeypatch.setattr(RaggedRows, "copy_to", lambda own, _device: replace(own, device_tokens=own.tokens.copy()))
    data = place_parts(load_data(texts), torch.device("cuda"))
    for rows in (data.validation, data.training[:3]):
        assert rows.device_tokens is data.training.device_tokens is not None
