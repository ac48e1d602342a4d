"""A model of fastText's program answers here as there, and a model of Shoal answers there as here."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.real_reviews import ABSENT, REVIEWS
from common.errors import TrainingError
from corpus.text import word_ids
from corpus.tokens import END_OF_LINE, char_ngrams, line_words, ngram_buckets, token_hash
from shoal import Model
from tests.trainer.classification.made_models import random_fasttext, random_model
from trainer.classification.labelling import Labeller
from trainer.classification.loading import load_model
from trainer.classification.losses import Loss
from trainer.classification.model_folder import write_model
from trainer.classification.program_export import UNKNOWN_WORD, program_line
from trainer.classification.program_model import ProgramRows
from trainer.classification.trained_model import TrainedModel
from trainer.output.program_file import ProgramFile

KNOWN = ("good", "bad", "not", "caf\u00e9", "\u65e5\u672c\u8a9e", "!", "x" * 30, "<b>", "GOOD")
OTHERS = ("seen", "never", "\U0001f600", "a\xa0b", "__label__a", "__label__", "__label__unseen", "UNKNOWN:", "</s>")
TEXTS = st.lists(st.sampled_from([*KNOWN, *OTHERS, "\t", "\0"]), max_size=9).map(" ".join)
SMOOTHING = 1e-5
"""What the program adds to probabilities before it takes their logarithm, of which it reports the exponential."""


def expected_rows(content: ProgramFile, text: str) -> list[int]:
    """The rows of a text by the rules of the program's dictionary, one after the other."""
    words, count = list(content.words), len(content.words)
    read = [
        word
        for word in line_words(text)
        if word not in (*content.labels, *content.ignored) and (word in words or not word.startswith(b"__label__"))
    ]
    found = []
    for word in read:
        found += [words.index(word)] if word in words else []
        if word != END_OF_LINE:
            ngrams = char_ngrams(word.decode(), content.char_lengths)
            found += [count + token_hash(ngram.encode()) % content.buckets for ngram in ngrams]
    return found + [
        count + bucket for bucket in ngram_buckets([*map(token_hash, read)], content.ngrams, content.buckets)
    ]


@given(
    texts=st.lists(TEXTS, max_size=5),
    ngrams=st.integers(1, 4),
    chars=st.sampled_from([range(0), range(1, 3), range(3, 7)]),
    ends=st.sampled_from(["word", "ignored", "unknown"]),
)
def test_rows_of_texts_are_those_of_the_plain_rules(texts: list[str], ngrams: int, chars: range, ends: str) -> None:
    content = ProgramFile(
        words=[word.encode() for word in KNOWN] + [END_OF_LINE] * (ends == "word"),
        labels=[b"__label__a"],
        ignored=[END_OF_LINE] * (ends == "ignored"),
        loss=3,
        ngrams=ngrams,
        char_lengths=chars,
        vectors=np.zeros((len(KNOWN) + (ends == "word") + 97, 1), np.float32),
        weights=np.zeros((1, 1), np.float32),
    )
    found = ProgramRows(content)(texts)
    each = [found.ids[start : start + length] for start, length in zip(found.starts, found.lengths, strict=True)]
    assert [sorted(rows) for rows in each] == [sorted(expected_rows(content, text)) for text in texts]


@pytest.fixture(scope="module")
def fasttext() -> Any:
    return pytest.importorskip("fasttext", reason="requirements-bench.txt is not installed")


def some_texts(count: int, seed: int) -> list[str]:
    chance = np.random.default_rng(seed)
    return [" ".join(chance.choice([*KNOWN, *OTHERS, ";", ""], chance.integers(0, 12))) for _ in range(count)]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the program learns from: texts of four labels, of which one is long and one has two parts."""
    labels = np.random.default_rng(7).choice(["a", "b", "\u00e9_c", "d" * 40], 400)
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    texts = (text.replace("__label__", "label").replace("</s>", "s") for text in some_texts(400, seed=1))
    path.write_text("".join(f"__label__{label} {text}\n" for label, text in zip(labels, texts, strict=True)), "utf-8")
    return path


def assert_answers(program: Any, lines: Sequence[str], names: Sequence[str], found: list[Any]) -> None:
    """Assert that the program answers these lines by the same labels and probabilities."""
    for line, (label, probabilities) in zip(lines, found, strict=True):
        (first, _), (labels, numbers) = program.predict(line), program.predict(line, k=-1)
        assert label == (first[0].removeprefix("__label__") if labels else None)
        if labels:
            told = dict(zip((each.removeprefix("__label__") for each in labels), numbers - SMOOTHING, strict=True))
            assert probabilities == pytest.approx([told[name] for name in names], abs=3e-7)


@pytest.mark.parametrize(
    "options",
    [
        {"wordNgrams": 1},
        {"wordNgrams": 3},
        {"wordNgrams": 2, "minn": 3, "maxn": 6},
        {"wordNgrams": 1, "minn": 1, "maxn": 2},
        {"wordNgrams": 2, "loss": "ova"},
        {"wordNgrams": 2, "loss": "ns"},
        {"wordNgrams": 2, "minCount": 1000},
    ],
    ids=str,
)
def test_a_model_of_the_program_answers_as_there(
    fasttext: Any, lines: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    sizes = {"dim": 6, "bucket": 500, "lr": 1.0, "epoch": 20, "thread": 1, "verbose": 0}
    program = fasttext.train_supervised(str(lines), **sizes, **options)
    program.save_model(str(tmp_path / "model.bin"))
    model, texts = load_model(tmp_path / "model.bin"), some_texts(500, seed=2)
    found = [(each.label, each.probabilities) for each in Labeller(model)(texts)]
    assert_answers(program, texts, model.class_names, found)
    assert len({label for label, _ in found}) > 1 or "minCount" in options


@pytest.mark.skipif(not REVIEWS, reason=ABSENT)
@pytest.mark.parametrize("options", [{"wordNgrams": 2}, {"wordNgrams": 2, "minn": 3, "maxn": 6}], ids=str)
@pytest.mark.soak
def test_real_reviews_get_the_same_answers(fasttext: Any, tmp_path: Path, options: dict[str, Any]) -> None:
    reviews = [
        (row["overall"], " ".join(row.get("reviewText", "").split("\n")))
        for path in REVIEWS
        for row in map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    ]
    learnt = "".join(f"__label__{stars:.0f} {text}\n" for stars, text in reviews[::2])
    (tmp_path / "learnt.txt").write_text(learnt, "utf-8")
    program = fasttext.train_supervised(
        str(tmp_path / "learnt.txt"), dim=10, bucket=100_000, minCount=2, thread=1, verbose=0, **options
    )
    program.save_model(str(tmp_path / "model.bin"))
    model, texts = load_model(tmp_path / "model.bin"), [text for _, text in reviews]
    found = [(each.label, each.probabilities) for each in Labeller(model)(texts)]
    assert_answers(program, texts, model.class_names, found)


def test_of_equal_probabilities_both_take_the_same_label(fasttext: Any, lines: Path, tmp_path: Path) -> None:
    program = fasttext.train_supervised(str(lines), dim=4, epoch=0, thread=1, verbose=0)
    program.save_model(str(tmp_path / "model.bin"))
    (found,), (expected, _) = Model(tmp_path / "model.bin").predict(["good"]), program.predict("good")
    assert found.probabilities == (0.25,) * 4
    assert f"__label__{found.label}" == expected[0]


def of_kind(kind: str, classes: tuple[str, ...] = (), temperature: float = 1.0, **options: Any) -> TrainedModel:
    """A model of random weights that knows these words."""
    model = random_fasttext(KNOWN[:-1], classes=classes, **options)
    loss = replace(model.loss, kind=kind, temperature=temperature)
    torch.manual_seed(3)
    model.classifier.last = torch.nn.Linear(4, loss.outputs, bias=False)
    torch.nn.init.normal_(model.classifier.last.weight, std=8.0)
    return replace(model, loss=loss, settings={**model.settings, "outputs": loss.outputs})


MODELS = {
    "three classes, of which one has a space": of_kind("softmax", ("a", "b c", "\u00e9"), 1.7, ngrams=3),
    "two classes": of_kind("softmax", temperature=0.6),
    "one output": of_kind("bce", temperature=2.5, ngrams=1),
    "ratings of two steps": of_kind("cross-entropy"),
    "squared error": of_kind("mse", temperature=0.3),
    "cut texts without stopwords": replace(of_kind("bce"), words="letters", stopwords=frozenset(["not"]), row_length=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_shoal_answers_there_as_here(fasttext: Any, tmp_path: Path, name: str) -> None:
    model, texts = MODELS[name], [*some_texts(300, seed=4), "", "; :", "Good,film&amp;GOOD"]
    write_model(tmp_path / "model", model, fasttext=True)
    read = Model(tmp_path / "model")
    lines = [read.program_line(text) for text in texts]
    assert any(UNKNOWN_WORD in line for line in lines)
    found = [
        (model.class_names[each.label] if isinstance(each.label, int) else each.label, each.probabilities)
        for each in read.predict(texts)
    ]
    assert_answers(fasttext.load_model(str(tmp_path / "model" / "model.bin")), lines, model.class_names, found)
    back = Model(tmp_path / "model" / "model.bin")
    assert back.classes == model.class_names
    assert [back.program_line(line) for line in lines] == lines
    for (label, probabilities), again in zip(found, back.predict(lines), strict=True):
        assert again.label == label
        assert again.probabilities == pytest.approx(probabilities, abs=3e-7)


def test_the_word_for_unknown_words_has_their_hash() -> None:
    assert token_hash(UNKNOWN_WORD.encode()) == token_hash(b"")


RATINGS = Loss.of({"kind": "cross-entropy", "scale": [1, 5, 4], "positive_weight": 1.0})
REFUSED = {
    "an LSTM": (random_model(), "it is of --model lstm, and the program knows fasttext alone"),
    "characters": (random_fasttext(char_ngrams="3-6"), "it has --char-ngrams, and there the program reads the"),
    "ratings": (replace(random_fasttext(), loss=RATINGS), "a label for each output; train it with --loss bce"),
    "a threshold": (
        replace(random_fasttext(), loss=replace(random_fasttext().loss, threshold=0.3)),
        "its threshold is 0.3, and the program takes the more probable label; train it with --metric accuracy",
    ),
    "the end of a line": (
        replace(random_fasttext(), ids=word_ids(["good", "</s>", "!"])),
        "its vocabulary has the word </s>, which is no word to the program",
    ),
    "a label": (
        random_fasttext(("good", "__label__b"), classes=("a", "b", "c")),
        "its vocabulary has the word __label__b, which",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_program_cannot_say_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    model, sentence = REFUSED[name]
    with pytest.raises(TrainingError, match=f"^the model cannot be written for the fastText program: .*{sentence}"):
        write_model(tmp_path / "model", model, fasttext=True)
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_the_program_has_no_folder(tmp_path: Path) -> None:
    write_model(tmp_path / "model", random_fasttext(), fasttext=True)
    with pytest.raises(TrainingError, match="is one file, and has no folder; copy the file"):
        write_model(tmp_path / "other", load_model(tmp_path / "model" / "model.bin"))


def test_the_card_says_how_the_program_gets_its_texts(tmp_path: Path) -> None:
    write_model(tmp_path / "model", random_fasttext(), fasttext=True)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "## model.bin" in card
    assert UNKNOWN_WORD in card
    assert "## model.onnx" not in card
    assert program_line(random_fasttext(), "GOOD, film") == f"good {UNKNOWN_WORD} {UNKNOWN_WORD}"
