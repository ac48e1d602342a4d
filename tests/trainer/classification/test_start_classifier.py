"""Classifiers that go on learning: what they begin with, on words, labels and classes that they know or do not know."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from common.errors import TrainingError
from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from corpus.layout import RowBlock
from corpus.text import FIRST_WORD, UNKNOWN
from tests.trainer.classification.made_models import random_fasttext, random_model
from trainer.classification import models
from trainer.classification.data import TextData, load_data
from trainer.classification.model_folder import write_model
from trainer.classification.models.classifier import Classifier
from trainer.classification.program_export import write_program_model
from trainer.classification.rows import Rows
from trainer.classification.start_classifier import joined_classes, start_from_classifier
from trainer.classification.trained_model import TrainedModel
from trainer.config import TrainConfig, configured
from trainer.options.presets import MODEL_DEFAULTS
from trainer.output.program_file import HEAD_BYTES, ProgramFile, read_program_file, write_program_file
from trainer.start_model import Kind, files_here, find_start_model, start_options

WORDS = ("good", "bad", "song", "well", "made", "loud")
TEXTS = ("good song", "bad", "loud song bad", "well made", "bad loud made good")
CPU = torch.device("cpu")


def made(
    path: Path, texts: Sequence[str], *, vocabulary: Sequence[str] = WORDS, test: Sequence[str] = ("song",), **how: Any
) -> Path:
    """A dataset in which each text is a row, labelled in turn, 20 times; the first of these rows are for validation."""
    settings = {"labelled": True, "words": "letters", "stopwords": "none", "vocabulary_size": 2_000_000, **how}
    fixed = "row_length" in how
    ids = {word: number for number, word in enumerate(vocabulary, FIRST_WORD)}
    classes = len(how.get("classes", ())) or 2

    def rows(texts: Sequence[str]) -> RowBlock:
        numbers = [[ids.get(word, UNKNOWN) for word in text.split()] for text in texts]
        width = how.get("row_length", 0)
        flat = [np.pad(each, (0, width - len(each))) if fixed else each for each in numbers]
        labels = np.array([number % classes for number in range(len(texts))], np.uint8)
        ratings = labels if settings["labelled"] else labels * 4 + 1
        tokens = np.array(flat, np.uint16) if fixed else np.concatenate(flat).astype(np.uint32)
        return RowBlock(tokens, np.array(list(map(len, numbers)), np.uint16 if fixed else np.uint32), labels, ratings)

    every = Settings(**({} if fixed else {"ragged": True}) | settings)
    write_dataset(path, settings=every, train=rows([*texts] * 20), test=rows([*test] * 6), vocabulary=list(vocabulary))
    return path


def folder(path: Path, model: TrainedModel) -> str:
    path.mkdir(exist_ok=True)
    write_model(path / "model", replace(model, stopwords=frozenset()))
    return str(path)


def begun(address: str, data: Path, **options: Any) -> tuple[TrainConfig, TextData]:
    """The configuration and the data of a run that starts from the model at an address."""
    given = start_options({"start_from": address, "data": data, "output": Path("o"), **options})
    config = configured(given)
    return config, start_from_classifier(config, load_data(data).read_to(config.row_length))


def classifier_of(config: TrainConfig, data: TextData) -> Classifier:
    assert data.weights is not None
    outputs = len(data.classes) or data.weights.state[_last(data)].shape[0]
    own = replace(config, vocabulary=data.weights.near)
    words = FIRST_WORD + len(data.vocabulary)
    classifier = models.build(config.model, own.model_settings(config.model, words=words, outputs=outputs))
    classifier.load_state_dict(data.weights.state)
    classifier.read_vocabulary(data.vocabulary)
    return classifier.eval()


def _last(data: TextData) -> str:
    assert data.weights is not None
    return next(name for name in data.weights.state if name.endswith(("head.1.weight", "last.weight")))


def outputs(classifier: Classifier, vocabulary: Sequence[str], text: str) -> Tensor:
    ids = {word: number for number, word in enumerate(vocabulary, FIRST_WORD)}
    tokens = torch.tensor([ids.get(word, UNKNOWN) for word in text.split()], dtype=torch.int32)
    whole = classifier.reads_whole_texts
    with torch.inference_mode():
        return classifier(tokens if whole else tokens[None], torch.tensor([len(tokens)]))


def texts_of(rows: Rows, vocabulary: Sequence[str]) -> list[str]:
    batch = rows.whole_batch(np.arange(len(rows)), CPU)
    words = ["#", "?", *vocabulary]
    return [" ".join(words[each] for each in some.tolist()) for some in batch.tokens.split(batch.lengths.tolist())]


MODELS = [
    random_model(WORDS, vocabulary=3),
    random_model(WORDS, name="both", vocabulary=3, buckets=30),
    random_model(WORDS, name="pretrained", direction="both", output_weights="own", model="pretrained", start_from="x"),
    replace(random_fasttext(WORDS), words="letters"),
    replace(random_fasttext(WORDS, char_ngrams="2-3"), words="letters"),
]


@pytest.mark.parametrize("model", MODELS, ids=["lstm", "both", "pretrained", "fasttext", "char-ngrams"])
def test_it_begins_as_it_was_and_new_words_follow(model: TrainedModel, tmp_path: Path) -> None:
    rated = model.name != "fasttext"
    how = {"labelled": False} if rated else {}
    data = made(tmp_path / "d.h5", ["new song", "bad new"], vocabulary=("new", "song", "bad"), **how)
    config, found = begun(folder(tmp_path, model), data)
    has_vectors = list(WORDS[:3]) if model.name in ("lstm", "both") else list(WORDS)
    far = list(WORDS[3:]) if model.name == "both" else []
    assert found.vocabulary == [*has_vectors, "new", *far]
    classifier = classifier_of(config, found)
    for text in TEXTS:
        before = outputs(model.classifier, WORDS, text)
        torch.testing.assert_close(outputs(classifier, found.vocabulary, text), before)
    assert texts_of(found.training, found.vocabulary)[:2] in (["new song", "bad new"], ["bad new", "new song"])


def test_without_a_new_word_it_is_the_same(tmp_path: Path) -> None:
    model = random_model(WORDS)
    _, found = begun(folder(tmp_path, model), made(tmp_path / "d.h5", ["song", "bad"], labelled=False))
    assert found.weights is not None
    for name, each in model.classifier.state_dict().items():
        assert torch.equal(found.weights.state[name], each), name


def test_new_words_start_from_their_parts_within_the_vocabulary(tmp_path: Path) -> None:
    model = random_model(WORDS)
    data = made(tmp_path / "d.h5", ["well-made zz song"], vocabulary=("well-made", "song", "zz"), labelled=False)
    address = folder(tmp_path, model)
    _, found = begun(address, data, vocabulary=2)
    assert found.vocabulary == [*WORDS, "well-made"]
    assert texts_of(found.test[:1], found.vocabulary) == ["song"]
    assert found.weights is not None
    table, before = found.weights.state["embedding.weight"], model.classifier.state_dict()["embedding.weight"]
    torch.testing.assert_close(table[-1], before[[2 + 3, 2 + 4]].mean(0))
    assert set(texts_of(found.training, found.vocabulary)) == {"well-made ? song"}


def test_classes_are_joined_by_their_names(tmp_path: Path) -> None:
    model = replace(random_fasttext(WORDS, classes=("art", "war", "sport")), words="letters")
    data = made(tmp_path / "d.h5", ["song", "bad", "loud"], classes=("sport", "cars", "art"))
    _, found = begun(folder(tmp_path, model), data)
    assert found.classes == ("art", "war", "sport", "cars")
    told = dict(zip(texts_of(found.training, found.vocabulary), found.training.labels.tolist(), strict=True))
    assert told == {"song": 2, "bad": 3, "loud": 0}
    assert found.weights is not None
    last, before = found.weights.state["last.weight"], model.classifier.state_dict()["last.weight"]
    assert torch.equal(last[:3], before)
    torch.testing.assert_close(last[3], before.mean(0))


def test_other_ratings_start_with_the_mean_of_their_side(tmp_path: Path) -> None:
    model = random_model(WORDS)
    config, found = begun(folder(tmp_path, model), made(tmp_path / "d.h5", ["song", "bad"]))
    text = "good song"
    before = outputs(model.classifier, WORDS, text)[0]  # of ratings from 1 to 5, from 4 on positive
    now = outputs(classifier_of(config, found), found.vocabulary, text)[0]
    torch.testing.assert_close(now, torch.stack([before[:3].mean(), before[3:].mean()]))


def test_what_cannot_be_joined_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="one tells negative texts from positive ones, and the other the classes a"):
        joined_classes((), ("a", "b", "c"), "x")
    address = folder(tmp_path, random_model(WORDS))
    with pytest.raises(TrainingError, match="reads texts by the rule of words 'letters', and the dataset was made by"):
        begun(address, made(tmp_path / "tokens.h5", TEXTS, words="tokens"))
    data = made(tmp_path / "d.h5", TEXTS)
    with pytest.raises(TrainingError, match="goes with --model lstm, not both; leave out --model"):
        begun(address, data, model="both")
    with pytest.raises(TrainingError, match="has other rules of words or other stopwords"):
        begun(address, data, old_data=str(made(tmp_path / "o.h5", TEXTS, words="tokens")))
    with pytest.raises(TrainingError, match="has ratings from 0 to 1, and the new dataset from 1 to 5"):
        begun(address, made(tmp_path / "r.h5", TEXTS, labelled=False), old_data=str(data))


@pytest.mark.parametrize("new", [{}, {"row_length": 5}], ids=["whole", "cut"])
@pytest.mark.parametrize("before", [{}, {"row_length": 4}], ids=["whole", "cut"])
def test_old_rows_are_learnt_again_but_none_of_those_held_out(
    new: dict[str, int], before: dict[str, int], tmp_path: Path
) -> None:
    old = ["good song", "bad unheard", "loud well", "made good"]
    vocabulary = ("song", "unheard", "well", "made", "good", "bad", "loud")
    address = folder(tmp_path, random_model((*WORDS, "unheard")))
    old_data = made(tmp_path / "old.h5", old, vocabulary=vocabulary, **before)
    data = made(tmp_path / "d.h5", ["bad bad bad", "song"], test=["made good", "bad wrong"], **new)
    config, found = begun(address, data, old_data=str(old_data), old_share=0.25, seed=3)
    count = len(load_data(data).training)
    texts = texts_of(found.training, found.vocabulary)
    assert set(texts[:count]) == {"bad bad bad", "song"}
    added = texts[count:]
    assert len(added) == round(0.25 * count)
    assert set(added) == {"good song", "loud well"}  # what one dataset does not know may equal what the other has
    assert found.weights is not None
    step = found.weights.about["continued"][-1]
    assert (step["old_rows"], step["left_out"]) == (len(added), 38)
    assert f"{len(added):,} training rows of {old_data} are learnt again" in found.weights.note
    again = start_from_classifier(config, load_data(data).read_to(config.row_length))
    assert texts_of(again.training, again.vocabulary) == texts
    assert found.test.labels.tolist() == load_data(data).test.labels.tolist()


def test_rows_on_the_disk_stay_there(tmp_path: Path) -> None:
    address = folder(tmp_path, random_model(WORDS))
    config = configured(start_options({"start_from": address, "data": Path("d"), "output": Path("o")}))
    data = made(tmp_path / "d.h5", TEXTS)
    old = str(made(tmp_path / "old.h5", ["good", "loud"]))
    config = replace(config, old_data=old, cache=tmp_path / "cache")
    in_memory, on_disk = (
        start_from_classifier(config, load_data(data, rows_in=place, cache=config.cache))
        for place in ("memory", "disk")
    )
    for part in in_memory.sizes:
        assert isinstance(getattr(on_disk, part).tokens, np.memmap)
        here, there = (texts_of(getattr(each, part), each.vocabulary) for each in (in_memory, on_disk))
        assert here == there


def test_the_lineage_tells_what_was_learnt_and_whether_the_test_rows_are_apart(tmp_path: Path) -> None:
    data = made(tmp_path / "d.h5", TEXTS)
    digest = load_data(data).digest
    model = random_model(WORDS)
    for dataset, apart in ((digest, True), ("another", None)):
        about = {**model.about, "dataset": dataset}
        _, found = begun(folder(tmp_path / dataset, replace(model, about=about)), data)
        assert found.weights is not None
        (step,) = found.weights.about["continued"]
        assert (step["dataset"], step["epochs"], step["test_rows_apart"]) == (dataset, 3, apart)
        assert step["test"]["accuracy"] == 0.9
        assert ("has not learnt from the test rows" in found.weights.note) is bool(apart)
    longer = replace(model, about={**about, "dataset": digest, "continued": [step]})
    _, found = begun(folder(tmp_path / "longer", longer), data)
    assert found.weights is not None
    assert [each["test_rows_apart"] for each in found.weights.about["continued"]] == [None, None]


def test_what_a_folder_has_is_known_without_reading_its_weights(tmp_path: Path) -> None:
    address = folder(tmp_path, random_model(WORDS, kind="bce", pooling="last", hidden=5))
    (tmp_path / "model" / "model.safetensors").unlink()
    start = find_start_model(address)
    assert (start.kind, start.model, start.words) == (Kind.CLASSIFIER, "lstm", "letters")
    assert {**start.layers} == {
        "embedding": 4, "hidden": 5, "layers": 1, "pooling": "last", "loss": "bce", "row_length": 4,
    }  # fmt: skip
    whole = find_start_model(folder(tmp_path / "whole", random_fasttext(WORDS)))
    assert whole.layers["char_ngrams"] is None
    assert "row_length" not in whole.layers
    assert start.defaults["learning_rate"] < TrainConfig.learning_rate
    config_file = tmp_path / "model" / "config.json"
    config = json.loads(config_file.read_text())
    config_file.write_text(json.dumps({**config, "settings": {"hidden": "many"}}))
    with pytest.raises(TrainingError, match="is damaged: it has not all settings of a lstm"):
        find_start_model(address)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "model.pt").touch()
    with pytest.raises(TrainingError, match="of an earlier version; name the folder that `shoal export` makes of it"):
        find_start_model(str(tmp_path / "old"))


def of_program(path: Path, labels: Sequence[str] = ("__label__2", "__label__1"), **fields: Any) -> str:
    """A file of fastText's program. Some of its entries are no words of the rule `tokens`."""
    words = [b"</s>", b"good", b"Bad", b"caf\xe9", b"song"]
    chance = np.random.default_rng(1)
    of_file = {"words": words, "labels": [label.encode() for label in labels], "loss": 3, "ngrams": 2}
    vectors, weights = chance.normal(size=(len(words) + 20, 3)), chance.normal(size=(len(labels), 3))
    matrices = {"vectors": vectors.astype(np.float32), "weights": weights.astype(np.float32)}
    write_program_file(path, ProgramFile(**{**of_file, "char_lengths": range(0), **matrices, **fields}))
    return str(path)


@pytest.mark.parametrize("classes", [(), ("ham", "spam", "eggs")])
def test_a_file_that_was_written_for_the_program_begins_as_the_model(classes: tuple[str, ...], tmp_path: Path) -> None:
    model = random_fasttext(WORDS, classes=classes)
    write_program_model(tmp_path / "model.bin", model)
    data = made(
        tmp_path / "d.h5", ["bad song", "new bad", "song"], words="tokens", classes=classes, vocabulary=(*WORDS, "new")
    )
    config, found = begun(str(tmp_path / "model.bin"), data)
    assert (found.vocabulary, set(found.classes)) == ([*WORDS, "new"], set(classes))
    order = [found.classes.index(name) for name in classes] or [0, 1]
    classifier = classifier_of(config, found)
    for text in (*TEXTS, "good unheard song"):
        before, now = outputs(model.classifier, WORDS, text), outputs(classifier, found.vocabulary, text)[:, order]
        torch.testing.assert_close(now.softmax(1), before.softmax(1))


def test_a_file_of_the_program_gives_its_words_and_classes(tmp_path: Path) -> None:
    address = of_program(tmp_path / "model.bin", ["__label__ham", "__label__spam", "__label__eggs"])
    how: dict[str, Any] = {"words": "tokens", "classes": ("spam", "tea", "eggs")}
    data = made(tmp_path / "d.h5", ["song", "bad", "song bad"], vocabulary=("song", "bad"), **how)
    config, found = begun(address, data)
    assert (config.model, config.embedding, config.ngrams, config.buckets, config.loss) == (
        "fasttext",
        3,
        2,
        20,
        "softmax",
    )
    assert found.classes == ("ham", "spam", "eggs", "tea")
    assert found.vocabulary == ["good", "song", "bad"]
    assert found.weights is not None
    content = read_program_file(Path(address), "it")
    torch.testing.assert_close(found.weights.state["vectors"][[2, 3]], torch.from_numpy(content.vectors[[1, 4]]))
    torch.testing.assert_close(found.weights.state["last.weight"][:3], torch.from_numpy(content.weights))


@pytest.mark.parametrize("labels", [("2", "1"), ("__label__1", "__label__2"), ("pos", "neg"), ("negative", "positive")])
def test_of_two_labels_of_the_program_the_positive_one_is_known(labels: tuple[str, ...], tmp_path: Path) -> None:
    address = of_program(tmp_path / "model.bin", labels)
    _, found = begun(address, made(tmp_path / "d.h5", ["song", "bad"], words="tokens"))
    assert found.classes == ()
    assert found.weights is not None
    weights = torch.from_numpy(read_program_file(Path(address), "it").weights)
    backwards = labels[0] in ("2", "pos")
    torch.testing.assert_close(found.weights.state["last.weight"], weights.flip(0) if backwards else weights)


def test_what_the_programs_file_has_is_known_from_its_first_bytes(tmp_path: Path) -> None:
    address = of_program(tmp_path / "model.bin", char_lengths=range(3, 7))
    start = find_start_model(address)
    (tmp_path / "short.bin").write_bytes(Path(address).read_bytes()[:HEAD_BYTES])
    assert find_start_model(str(tmp_path / "short.bin"))[2:] == start[2:]
    assert start.layers == {"embedding": 3, "ngrams": 2, "char_ngrams": "3-6", "buckets": 20, "loss": "cross-entropy"}
    assert start.defaults["learning_rate"] < MODEL_DEFAULTS["fasttext"]["learning_rate"]
    assert files_here(address) == [Path(address)]


@pytest.mark.parametrize(
    ("labels", "fields", "sentence"),
    [
        (("ham", "spam"), {}, "has the labels ham, spam, of which it is not clear which is positive"),
        (("1", "2"), {"ngrams": 9}, "cannot go on learning here: --ngrams is 9"),
        (("1", "2"), {"loss": 1}, "hierarchical softmax"),
        (("a", "b", "c"), {}, "cannot be joined"),
    ],
)
def test_a_file_of_the_program_that_cannot_go_on_is_refused(
    labels: tuple[str, ...], fields: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    data = made(tmp_path / "d.h5", ["song", "bad"], words="tokens")
    with pytest.raises(TrainingError, match=sentence):
        begun(of_program(tmp_path / "model.bin", labels, **fields), data)


def test_a_quantised_file_and_one_of_word_embeddings_are_refused_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "small.ftz").touch()
    with pytest.raises(TrainingError, match=r"is quantised, and cannot go on learning; give the \.bin"):
        find_start_model(str(tmp_path / "small.ftz"))
    (tmp_path / "vectors.bin").write_bytes(b"3 2\ngood " + bytes(99))
    with pytest.raises(TrainingError, match="is not a model of the fastText program"):
        find_start_model(str(tmp_path / "vectors.bin"))
    with pytest.raises(TrainingError, match="there is no model at"):
        find_start_model(str(tmp_path / "none.bin"))
