"""The Python API: the documented examples and its errors."""

from pathlib import Path
from typing import Any

import pytest

import shoal
from bootstrap.demo.reviews import write_reviews
from common.errors import DataError
from shoal.arguments import errors_name_arguments
from tests.bootstrap.cli import known_model
from tests.shoal.outside import EXAMPLES, ROOT, run_python
from tests.trainer.embeddings.made_text import lines


@pytest.mark.soak
def test_the_example_makes_a_model_that_predicts_in_the_order_of_the_texts(tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.json", texts=1_500)
    printed = run_python(tmp_path, EXAMPLES / "reviews_to_predictions.py", "reviews.json", "results")
    first, second, *predictions = printed.splitlines()
    assert first.startswith("1,500 distinct texts in ")
    assert second.startswith("accuracy ")
    assert [line[4:6] for line in predictions] == ["  ", "  "]
    data, output = tmp_path / "results" / "data" / "dataset.h5", tmp_path / "results" / "model"
    summary = shoal.train(data, output, resume=True)
    assert summary["model"] == summary["search"]["settings"]["model"]
    with pytest.raises(shoal.TrainingError, match="is a finished model"):
        shoal.train(data, output)
    model = shoal.load_model(output)
    found = model.predict(["good", "", "bad", "good"])
    assert [each.label is None for each in found] == [False, True, False, False]
    assert found[0] == found[3]
    assert model.classes == ("negative", "positive")
    assert [each.probabilities[1] for each in found] == [each.probability for each in found]
    assert model.predict(["bad"], threshold=0.0)[0].label == 1


def test_invalid_arguments_raise_errors_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.json: no such file"):
        shoal.preprocess(tmp_path / "absent.json", tmp_path / "data")
    with pytest.raises(shoal.TrainingError, match=r"^epochs is 0, but must be at least 1"):
        shoal.train(tmp_path / "dataset.h5", tmp_path / "model", epochs=0)
    with pytest.raises(shoal.TrainingError, match="there is no model at "):
        shoal.load_model(tmp_path)
    with pytest.raises(TypeError, match="epoch"):
        shoal.train(tmp_path / "dataset.h5", tmp_path / "model", epoch=1)
    with pytest.raises(DataError, match=r"^rating and label exclude each other"):
        shoal.preprocess(tmp_path / "absent.json", tmp_path / "data", rating="stars", label="mood")


def test_commands_in_messages_are_not_translated() -> None:
    sentence = r"^give min_count; `shoal train --text-field x` shows files$"
    with pytest.raises(DataError, match=sentence), errors_name_arguments(input="files"):
        raise DataError("give --min-count; `shoal train --text-field x` shows --input")


@pytest.mark.parametrize(
    ("texts", "threshold", "error", "sentence"),
    [
        ("good", None, TypeError, "texts must be a list of strings"),
        (["good", 5.0], None, TypeError, r"texts\[1\] must be a str, not float"),
        (["good"], 7, ValueError, "threshold is 7, but must be from 0 to 1"),
        (["good"], float("nan"), ValueError, "threshold is nan"),
    ],
)
def test_predict_refuses_invalid_arguments(
    tmp_path: Path, texts: Any, threshold: float | None, error: type[Exception], sentence: str
) -> None:
    known_model.save(tmp_path)
    model = shoal.load_model(tmp_path)
    assert [each.label for each in model.predict(("good", "bad"), threshold=0.5)] == [1, 0]
    with pytest.raises(error, match=sentence):
        model.predict(texts, threshold=threshold)


def test_reading_options_are_passed_on(tmp_path: Path) -> None:
    rows = [f"{'good' if number % 2 else 'poor'};a lamp named {'la' * number + 'lu'}" for number in range(60)]
    (tmp_path / "reviews.csv").write_text("\n".join(["mood;words", *rows]))
    made = shoal.preprocess(
        tmp_path / "reviews.csv", tmp_path / "data", label="mood", text=("words",), positive_label="good"
    )
    assert made.counts["labels"]["after"] == {"0": 30, "1": 30}


def test_importing_the_package_loads_no_heavy_library() -> None:
    program = "import sys, shoal; assert not {'torch', 'mrjob', 'numpy', 'h5py'} & set(sys.modules)"
    run_python(ROOT, "-c", program)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = shoal.nonsense
    assert {name for names in shoal._OF.values() for name in names} == set(shoal.__all__)


@pytest.mark.soak
def test_the_example_of_word_embeddings_finds_related_words(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(lines(3000)))
    printed = run_python(tmp_path, EXAMPLES / "word_embeddings.py", "text.txt", "results", "seaa")
    assert [word[:3] for word in printed.split()[-5:]] == 5 * ["sea"]


def test_embed_refuses_missing_text_and_unknown_tokenisers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.txt"):
        shoal.embed(tmp_path / "absent.txt", tmp_path / "words")
    with pytest.raises(DataError, match="tokeniser is 'runes', but must be one of"):
        shoal.embed(tmp_path / "absent.txt", tmp_path / "words", tokeniser="runes")
