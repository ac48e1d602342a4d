"""Model folder and ONNX file: complete round trips, and errors for damaged ones."""

import json
import runpy
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from common.errors import TrainingError
from tests.installed import empty_environment, plain
from tests.trainer.classification.made_models import random_fasttext, random_linear, random_model
from trainer.classification import model_folder
from trainer.classification.labelling import Labeller
from trainer.classification.model_folder import load_model, write_model, write_onnx
from trainer.classification.trained_model import TrainedModel

TEXTS = ["good song", "bad", "song bad good", "the"]
WRITTEN = ("config.json", "measures.json", "model.safetensors", "vocabulary.txt")
READ = ("config.json", "measures.json", "model.safetensors", "vocabulary.txt")


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.fixture(scope="module")
def written(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "model"
    write_model(folder, model)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A copy that a test may modify."""
    return copytree(written, tmp_path / "model")


def said(model: TrainedModel) -> list[tuple[float, ...]]:
    return [each.probabilities for each in Labeller(model)(TEXTS)]


def test_a_model_survives_a_round_trip(model, written):
    assert sorted(path.name for path in written.iterdir()) == sorted(WRITTEN)
    assert len({path.stat().st_mode for path in written.iterdir()}) == 1
    for found in (load_model(written), load_model(written.parent)):
        assert said(found) == said(model)
        for name in ("name", "settings", "loss", "ids", "stopwords", "row_length", "about", "words", "classes"):
            assert getattr(found, name) == getattr(model, name), name


def test_a_calibrated_model_survives_a_round_trip(model, tmp_path):
    calibrated = replace(model, loss=replace(model.loss, temperature=2.0, threshold=0.75))
    write_model(tmp_path / "model", calibrated)
    found = load_model(tmp_path)
    assert found.loss == calibrated.loss
    assert said(found) == said(calibrated) != said(model)
    assert [each.label for each in Labeller(found)(TEXTS[:3])] == [int(each[1] > 0.75) for each in said(found)[:3]]


def test_other_programs_can_read_the_files(model, written):
    assert load_file(written / "model.safetensors").keys() == model.classifier.state_dict().keys()
    assert (written / "vocabulary.txt").read_text() == "good\nbad\nsong\n"
    assert json.loads((written / "measures.json").read_text()) == {
        "epoch": 3,
        "test": {"accuracy": 0.9, "majority": 0.7},
    }
    config = json.loads((written / "config.json").read_text())
    assert (config["words"], config["stopwords"], config["row_length"]) == ("letters", ["the"], 4)
    assert config["data"] == {"dataset": "d1"}


@pytest.mark.parametrize("name", READ)
def test_a_missing_file_is_one_sentence(folder, name, messages):
    (folder / name).unlink()
    with messages.raises(TrainingError) as caught:
        load_model(folder)
    assert name in str(caught.value)


def test_mixed_files_of_two_models_are_refused(folder, tmp_path, messages):
    other = random_model()
    with torch.no_grad():
        other.classifier.embedding.weight.mul_(2)
    write_model(tmp_path / "other", other)
    (tmp_path / "other" / "model.safetensors").replace(folder / "model.safetensors")
    with messages.raises(TrainingError):
        load_model(folder)


def test_errors_of_a_missing_unreadable_or_unwritable_model_name_the_path(model, tmp_path, messages):
    for address in ("", "absent", "absent.pt", "x" * 300):
        with messages.raises(TrainingError):
            load_model(tmp_path / address)
    with messages.raises(TrainingError):
        write_model(tmp_path / "absent" / "model", model)


@settings(max_examples=100)
@given(data=st.data())
def test_a_folder_with_flipped_bits_is_refused_or_predicts_the_same(model, written, data):
    path = written / data.draw(st.sampled_from(READ))
    content = path.read_bytes()
    file = bytearray(content)
    for place in data.draw(st.lists(st.integers(0, len(file) - 1), min_size=1, max_size=3)):
        file[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(file)
    try:
        with suppress(TrainingError):
            assert said(load_model(written)) == said(model)
    finally:
        path.write_bytes(content)


def signed(config: dict[str, Any]) -> str:
    content = {name: value for name, value in config.items() if name != "digest"}
    return json.dumps({**content, "digest": digest(json.dumps(content, sort_keys=True).encode())})


def digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def rewrite(folder: Path, harm: Callable[[dict[str, Any]], Any]) -> None:
    """Modify the configuration, and update all digests."""
    config = json.loads((folder / "config.json").read_text())
    for name in READ[1:]:
        content = (folder / name).read_bytes()
        config["files"][name] = {"bytes": len(content), "digest": digest(content)}
    harm(config)
    (folder / "config.json").write_text(signed(config))


HARMS = {
    **{f"no {name}": lambda held, name=name: held.pop(name) for name in ("model", "data", "files")},
    "a file less": lambda held: held["files"].pop("vocabulary.txt"),
    "a size in letters": lambda held: held["files"]["measures.json"].update(bytes="9"),
    "an earlier format": lambda held: held.update(format=1),
    "a later format": lambda held: held.update(format=99),
    "an invalid option": lambda held: held["settings"].update(pooling="first"),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_an_invalid_configuration_is_one_sentence(folder, harm, messages):
    rewrite(folder, harm)
    tracemalloc.start()
    with messages.raises(TrainingError) as caught:
        load_model(folder)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    assert str(folder) in str(caught.value)


def test_a_huge_configuration_is_not_read(folder, monkeypatch, messages):
    size = (folder / "config.json").stat().st_size
    monkeypatch.setattr(model_folder, "DOCUMENT_BYTES", size)
    load_model(folder)
    monkeypatch.setattr(model_folder, "DOCUMENT_BYTES", size - 1)
    with messages.raises(TrainingError):
        load_model(folder)


@pytest.mark.parametrize("words", ["good\nbad\n", "good\nbad\nsong\nmore\n", "good\nbad\nbad\n", "good\n\nsong\n"])
def test_a_vocabulary_of_wrong_length_or_with_duplicates_is_one_sentence(folder, words, messages):
    (folder / "vocabulary.txt").write_text(words)
    rewrite(folder, lambda _: None)
    with messages.raises(TrainingError):
        load_model(folder)


WEIGHTS = {
    "a number more": torch.ones(1),
    "an empty tensor more": torch.ones(0),
    "of doubles": torch.ones(5).double(),
    "nan": torch.full((5,), torch.nan),
}


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_of_another_model_are_one_sentence(folder, kind, messages):
    name = "more" if kind.endswith("more") else "head.1.bias"
    save_file(load_file(folder / "model.safetensors") | {name: WEIGHTS[kind]}, folder / "model.safetensors")
    rewrite(folder, lambda _: None)
    with messages.raises(TrainingError):
        load_model(folder)


@pytest.mark.parametrize("content", [b"", b"\xff" * 8, b"\x02" + bytes(7) + b"{}", b"\xff" * 7 + b"\x7f{"])
def test_weights_in_another_format_are_one_sentence(folder, content):
    (folder / "model.safetensors").write_bytes(content)
    rewrite(folder, lambda _: None)
    with pytest.raises(TrainingError, match="was not written by"):
        load_model(folder)


WORDS = tuple(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")

LSTM, CROSS = {"embedding": 8, "hidden": 5, "layers": 1}, "cross-entropy"
MODELS = {
    "lstm": partial(random_model, WORDS, kind=CROSS, **LSTM),
    "last": partial(random_model, WORDS, kind="bce", pooling="last", **{**LSTM, "layers": 2, "vocabulary": 20}),
    "mse": partial(random_model, WORDS, kind="mse", **LSTM),
    "linear": partial(random_linear, WORDS),
    "words": partial(random_fasttext, WORDS, ngrams=1),
    "trigrams": partial(random_fasttext, WORDS, ngrams=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_an_onnx_file_gives_the_probabilities_of_the_model(tmp_path, name):
    import onnx
    import onnxruntime

    model = MODELS[name]()
    model = replace(model, loss=replace(model.loss, temperature=1.7))
    write_onnx(tmp_path / "model.onnx", model)
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    chance = np.random.default_rng(0)
    for rows, width in ((1, 1), (2, 3), (7, 100), (300, 9)):
        lengths = chance.integers(1, width + 1, rows)
        ids = chance.integers(1, 2 + len(WORDS), (rows, width), dtype=np.int32)
        real = np.arange(width) < lengths[:, None]
        tokens = np.where(real, ids, np.int32(0))
        (found,) = session.run(["probabilities"], {"tokens": tokens, "lengths": lengths})
        given = ids[real] if model.classifier.reads_whole_texts else tokens
        with torch.inference_mode():
            outputs = model.classifier(torch.from_numpy(given), torch.from_numpy(lengths))
            expected = model.loss.probabilities(outputs).numpy()
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() < 1e-5


def test_a_program_without_shoal_gives_the_labels_and_probabilities_of_the_model(tmp_path, monkeypatch):
    words, classes = ("don't", "good", "!", "\u00e9t\u00e9", "bad"), ("a", "b", "c")
    texts = [
        "Don\u2019t &amp; GOOD bad the good bad",
        "good!<br />\u00c9T\u00c9\xa0bad",
        "&#39; so",
        "",
        f"good &#{'9' * 5000};",
    ]
    letters = random_model(tuple(word for word in words if word.isascii() and word != "!"), kind="bce")
    for number, model in enumerate((letters, random_fasttext(words, classes=classes))):
        write_model(tmp_path / str(number), model, onnx=True)
        program = runpy.run_path(str(tmp_path / str(number) / "predict.py"))["Model"]()
        listed = "".join(f"{name}=={version(name)}\n" for name in ("numpy", "onnxruntime"))
        assert (tmp_path / str(number) / "requirements.txt").read_text() == listed
        expected = Labeller(model)(texts)
        found = program.predict(texts)
        names = {0: "negative", 1: "positive"}
        assert [label for label, _ in found] == [names.get(each.label, each.label) for each in expected]
        assert np.abs(np.array([own for _, own in found]) - [each.probabilities for each in expected]).max() < 1e-6
    monkeypatch.setattr(sys, "argv", ["predict.py", "texts.txt"])
    with pytest.raises(SystemExit, match="usage: "):
        runpy.run_path(str(tmp_path / "0" / "predict.py"), run_name="__main__")


@pytest.mark.slow
def test_every_model_labels_a_thousand_texts_in_an_environment_with_only_the_listed_libraries(tmp_path):
    classes = ("a", "b", "c")
    three = {"lstm3": partial(random_model, WORDS, kind="softmax", classes=classes, **LSTM)}
    three |= {"linear3": partial(random_linear, WORDS, classes=classes)}
    three |= {"words3": partial(random_fasttext, WORDS, ngrams=2, classes=classes)}
    chance = np.random.default_rng(0)
    pieces = [*WORDS, "Word", "new", "&amp;", "the", "!", "\n", "\u00e9"]
    texts = [" ".join(chance.choice(pieces, length)) for length in chance.integers(0, 60, 1000)]
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    program = "import json, predict; print(json.dumps(predict.Model().predict(json.load(open('../texts.json')))))"
    for name, make in {**MODELS, **three}.items():
        write_model(tmp_path / name, make(), onnx=True)
        if not (tmp_path / "environment").exists():
            listed = (tmp_path / name / "requirements.txt").read_text().split()
            python = empty_environment(tmp_path / "environment", listed)
        done = subprocess.run(
            [python, "-c", program], cwd=tmp_path / name, env=plain(), capture_output=True, check=True
        )
        found = [each for _, each in json.loads(done.stdout)]
        expected = [each.probabilities for each in Labeller(load_model(tmp_path / name))(texts)]
        assert np.abs(np.array(found) - expected).max() < 1e-6, name
