"""The Python API: the documented examples, its errors, and the reference page of all public names."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
import shoal_guard
import shoal_local_aws.account
import shoal_local_aws.testing

import shoal
from common.errors import DataError
from shoal.api.arguments import errors_name_arguments
from shoal.demo.reviews import write_reviews
from tests.shoal.outside import EXAMPLES, ROOT, run_python
from tests.trainer.embeddings.made_text import lines


@pytest.mark.soak
def test_the_example_makes_a_model_that_predicts_in_the_order_of_the_texts(tmp_path) -> None:
    write_reviews(tmp_path / "reviews.json", texts=1_500)
    printed = run_python(tmp_path, EXAMPLES / "reviews_to_predictions.py", "reviews.json", "results")
    first, second, *answers = printed.splitlines()
    assert first.startswith("1,500 distinct texts in ")
    assert second.startswith("accuracy ")
    assert [line[4:6] for line in answers] == ["  ", "  "]
    data, output = tmp_path / "results" / "data" / "dataset.h5", tmp_path / "results" / "model"
    assert shoal.train(data, output, resume=True)["finished_before"]
    with pytest.raises(shoal.TrainingError, match="is a finished model"):
        shoal.train(data, output)
    model = shoal.load_model(output)
    predictions = model.predict(["good", "", "bad", "good"])
    assert [each.label is None for each in predictions] == [False, True, False, False]
    assert predictions[0] == predictions[3]
    assert model.classes == ("negative", "positive")
    assert [each.probabilities[1] for each in predictions] == [each.probability for each in predictions]
    assert model.predict(["bad"], threshold=0.0)[0].label == 1


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (DataError, lambda path: shoal.preprocess(path / "absent.json", path / "data")),
        (DataError, lambda path: shoal.preprocess(path / "a.json", path / "data", rating="stars", label="mood")),
        (shoal.TrainingError, lambda path: shoal.train(path / "dataset.h5", path / "model", epochs=0)),
        (shoal.TrainingError, lambda path: shoal.train(path / "dataset.h5", path / "model", ranks=0)),
        (shoal.TrainingError, lambda path: shoal.load_model(path)),
        (DataError, lambda path: shoal.embed(path / "absent.txt", path / "words")),
        (DataError, lambda path: shoal.embed(path / "absent.txt", path / "words", tokeniser="runes")),
    ],
    ids=["no file", "rating and label", "no epochs", "no ranks", "no model", "no text", "no tokeniser"],
)
def test_invalid_arguments_raise_errors_with_a_message(error, call, tmp_path, messages) -> None:
    with messages.raises(error):
        call(tmp_path)


def test_an_unknown_option_raises_a_type_error(tmp_path) -> None:
    with pytest.raises(TypeError, match="'epoch'"):
        shoal.train(tmp_path / "dataset.h5", tmp_path / "model", epoch=1)


def test_commands_in_messages_are_not_translated() -> None:
    with pytest.raises(DataError) as refusal, errors_name_arguments(input="files"):
        raise DataError("give --min-count; `shoal train --text-field x` shows --input")
    assert str(refusal.value) == "give min_count; `shoal train --text-field x` shows files"


@pytest.mark.parametrize(
    ("texts", "threshold", "error"),
    [
        ("good", None, TypeError),
        (["good", 5.0], None, TypeError),
        (["good"], 7, ValueError),
        (["good"], float("nan"), ValueError),
    ],
)
def test_predict_refuses_invalid_arguments(tmp_path, messages, texts, threshold, error) -> None:
    from tests.shoal.cli.known_model import save

    save(tmp_path)
    model = shoal.load_model(tmp_path)
    for limit in (0, 0.5, 1):
        assert len(model.predict(("good", "bad"), threshold=limit)) == 2
    assert [each.label for each in model.predict(("good", "bad"), threshold=0.5)] == [1, 0]
    with messages.raises(error):
        model.predict(texts, threshold=threshold)


@pytest.mark.parametrize(("names", "labels"), [("012", {0, 1, 2}), ("01b", {"0", "1", "b"})])
def test_labels_are_integers_if_the_names_of_all_classes_are(tmp_path, names, labels) -> None:
    from tests.trainer.classification.made_models import random_fasttext
    from trainer.classification.model_folder import write_model

    write_model(tmp_path / "model", random_fasttext(classes=tuple(names)))
    good, unknown = shoal.load_model(tmp_path).predict(["good", "so"])
    assert (good.label in labels, unknown.label, good.probability) == (True, None, max(good.probabilities))


def test_reading_options_are_passed_on(tmp_path) -> None:
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
def test_the_example_of_word_embeddings_finds_related_words(tmp_path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(lines(3000)))
    printed = run_python(tmp_path, EXAMPLES / "word_embeddings.py", "text.txt", "results", "seaa")
    assert [word[:3] for word in printed.split()[-5:]] == 5 * ["sea"]


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"


def public_names() -> list[str]:
    """Return the names on the page."""
    return re.findall(r"^::: ([\w.]+)$", PAGE.read_text("utf-8"), re.MULTILINE)


def test_the_reference_page_lists_all_public_names() -> None:
    packages = (shoal, shoal_guard, shoal_local_aws.account, shoal_local_aws.testing)
    offered = {f"{package.__name__}.{name}" for package in packages for name in package.__all__}
    assert offered - set(public_names()) == set()


@pytest.mark.parametrize("name", public_names())
def test_public_names_are_importable_and_documented(name) -> None:
    module, _, last = name.rpartition(".")
    member = getattr(importlib.import_module(module), last)
    text = member.__doc__ or ""
    assert text
    if inspect.isfunction(member):
        assert [each for each in inspect.signature(member).parameters if f" {each}: " not in text] == []
        assert " Raises:\n" in text
