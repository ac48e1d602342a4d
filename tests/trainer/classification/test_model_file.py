"""A model file is what training left, or it is refused."""

from pathlib import Path

import pytest
import torch

from trainer.classification import models
from trainer.classification.model_file import TrainedModel, load_model, save_model
from trainer.errors import TrainingError

SETTINGS = {
    "words": 5,
    "embedding": 4,
    "hidden": 3,
    "layers": 1,
    "pooling": "mean+words",
    "dropout": 0.5,
    "embedding_dropout": 0.5,
    "outputs": 1,
}


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    torch.manual_seed(1)
    classifier = models.build("lstm", SETTINGS)
    with torch.no_grad():
        classifier.embedding.weight.mul_(30)
    save_model(
        tmp_path / "model.pt",
        name="lstm",
        settings=SETTINGS,
        loss={"kind": "bce", "scale": [1, 5, 4], "positive_weight": 0.5},
        state=classifier.state_dict(),
        vocabulary=["good", "bad", "song"],
        stopwords=frozenset({"the"}),
        row_length=4,
        about={"dataset": "d1", "epoch": 3, "test": {"accuracy": 0.9}},
    )
    return load_model(tmp_path)


def test_a_model_says_where_it_comes_from(model: TrainedModel) -> None:
    assert (model.about["dataset"], model.about["epoch"]) == ("d1", 3)


@pytest.mark.parametrize("wrong", [{"rating_steps": 3}, {"rating_steps": True}, {"rating_fraction": 1}])
def test_a_model_that_misstates_how_ratings_were_written_is_refused(
    model: TrainedModel, tmp_path: Path, wrong: dict[str, int]
) -> None:
    content = torch.load(tmp_path / "model.pt", weights_only=True)
    torch.save({**content, "about": {**model.about, **wrong}}, tmp_path / "model.pt")
    with pytest.raises(TrainingError, match="is not a model written by"):
        load_model(tmp_path)


def test_what_is_no_model_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no such file; `shoal train` writes one"):
        load_model(tmp_path)
    (tmp_path / "model.pt").write_text("hello")
    with pytest.raises(TrainingError, match="is not a model written by `shoal train`"):
        load_model(tmp_path / "model.pt")
    torch.save({"format": 99}, tmp_path / "model.pt")
    with pytest.raises(TrainingError, match="is not a model of format 4"):
        load_model(tmp_path)
