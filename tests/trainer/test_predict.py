"""A model file says the same about new texts as the model that was trained."""

from pathlib import Path

import pytest
import torch

from trainer import models
from trainer.errors import TrainingError
from trainer.predict import Model, Prediction, load_model, predict, save_model

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
def model(tmp_path: Path) -> Model:
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


def test_texts_are_cleaned_as_the_training_texts_were(model: Model) -> None:
    plain, dressed = predict(model, ["good song", "  The GOOD, the &lt;song&gt;!"])
    assert plain == pytest.approx(dressed, abs=1e-6)


def test_order_matters_and_answers_come_in_the_order_of_texts(model: Model) -> None:
    texts = ["good", "bad song", "song bad good", "bad"]
    together = predict(model, texts)
    alone = [predict(model, [text])[0] for text in texts]
    assert [p.label for p in together] == [p.label for p in alone]
    assert [p.probability for p in together] == pytest.approx([p.probability for p in alone], abs=1e-6)
    assert len({round(p.probability, 4) for p in together}) == 4


def test_words_outside_the_vocabulary_are_unknown_but_count(model: Model) -> None:
    assert predict(model, ["good zebra"]) == predict(model, ["good quagga"])
    assert predict(model, ["good zebra"]) != predict(model, ["good"])


def test_only_the_first_words_of_a_row_count(model: Model) -> None:
    assert predict(model, ["good bad good bad song"]) == predict(model, ["good bad good bad good good"])


def test_the_label_is_1_above_one_half(model: Model) -> None:
    for label, probability in predict(model, ["good", "bad", "song", "good song", "bad bad"]):
        assert label == int(probability > 0.5)


@pytest.mark.parametrize("text", ["", "12345 !?", "the The THE"])
def test_a_text_without_words_has_no_label(model: Model, text: str) -> None:
    assert predict(model, [text, "good"])[0] == Prediction(None, 0.5)


def test_no_texts_no_answers(model: Model) -> None:
    assert predict(model, []) == []


def test_a_model_says_where_it_comes_from(model: Model) -> None:
    assert (model.about["dataset"], model.about["epoch"]) == ("d1", 3)


@pytest.mark.parametrize("wrong", [{"rating_steps": 3}, {"rating_steps": True}, {"rating_fraction": 1}])
def test_a_model_that_misstates_how_ratings_were_written_is_refused(
    model: Model, tmp_path: Path, wrong: dict[str, int]
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
