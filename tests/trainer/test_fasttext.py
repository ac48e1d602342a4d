"""fastText's model and the linear model learn the same on one rank and on several, with each optimiser."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from common.errors import TrainingError
from tests.trainer.conftest import Launch
from tests.trainer.runs import finish, summary, train_here, weights
from trainer.classification import task
from trainer.classification.data import load_data
from trainer.classification.labelling import Labeller
from trainer.classification.model_folder import load_model
from trainer.config import configured
from trainer.distributed.ranks import Ranks
from trainer.registry import RunSize

LEARNING = ("--model", "fasttext", "--buckets", "500", "--threads", "1")
STEPS = ("--epochs", "6", "--learning-rate", "0.2")


def trained(launch: Launch, data: Path, output: Path, *options: str | Path, ranks: int = 2) -> dict[str, Any]:
    """Return the summary of a run on ranks."""
    finish(launch(ranks, "-m", "trainer", "--data", data, "--output", output, *LEARNING, *options))
    return summary(output)


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
    found = trained(launch, texts, tmp_path / "2", *options, "--balance", "3,1")
    assert found["rows_of_ranks"][0] > 2 * found["rows_of_ranks"][1]
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
        ({"model": "lstm", "optimiser": "sgd"}, {"words": 9}, None),
        ({"model": "linear"}, {"rows": 2000}, 20),
        ({"model": "linear"}, {"rows": 150}, 8),
        ({"model": "linear"}, {"rows": 1_000_000, "on_gpus": True}, 4096),
        ({"model": "lstm"}, {"rows": 150_000, "on_gpus": True}, 1500),
        ({"model": "lstm"}, {"rows": 2000, "on_gpus": True}, 256),
        ({"model": "lstm"}, {"rows": 21_300_000, "on_gpus": True}, 16_384),
        ({"model": "lstm"}, {"rows": 150_000}, None),
    ],
)
def test_the_default_batch_size_depends_on_the_model_and_its_texts(options, size, batch):
    config = configured({"data": Path("d"), "output": Path("o"), **options})
    assert config.with_step_rows(RunSize(**{"on_gpus": False, **size})).global_batch == batch


@pytest.mark.parametrize(
    ("device", "options", "batch"),
    [
        ("cpu", {"preset": "fasttext"}, 192),
        ("cuda", {"model": "lstm"}, 256),
        ("cpu", {"model": "linear", "buckets": 9}, 19),
    ],
)
def test_the_default_batch_size_depends_on_the_device_and_the_training_rows(texts, device, options, batch):
    ranks = cast("Ranks", SimpleNamespace(device=torch.device(device)))
    config = configured({"data": texts, "output": texts.parent, **options})
    assert task.Classification.resolve_config(config, ranks, load_data(texts))[0].global_batch == batch


def test_word_dropout_is_refused_for_a_model_that_reads_whole_texts(texts, tmp_path, messages):
    with messages.raises(TrainingError):
        configured({"data": texts, "output": tmp_path, "model": "fasttext", "word_dropout": 0.2})


def test_parts_of_one_array_share_one_copy_on_the_device(texts):
    ranks = cast("Ranks", SimpleNamespace(device=torch.device("cpu")))
    config = configured({"data": texts, "output": texts.parent, "rows_in": "device"})
    data = task.Classification.load(config, ranks, memory=0, stop=lambda: False)
    assert data.training.device_tokens is not None
    assert data.validation.device_tokens is data.training.device_tokens
    assert data.training[:3].device_tokens is data.training.device_tokens
