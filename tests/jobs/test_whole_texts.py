"""Ragged rows, words by rule 1b, duplicates and more than two classes: by the real jobs, against the oracle."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.dataset_settings import Settings
from corpus.reading.sources import Inputs, ReadingOptions
from jobs.pipeline import preprocess_locally
from tests import oracle
from tests.jobs.piles import NLTK, assert_equals_oracle

TOPICS = ("sports", "3", "arts & crafts", "world")
WORDS = st.sampled_from(
    ["good", "Bad", "the", "don't", "'quoted'", "caf\u00e9", "x<br />y", "4.5", "#:counts", '"', "!"]
)
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)


def kinds(rules: oracle.Rules) -> Settings:
    """The settings of these rules."""
    return Settings(
        ragged=rules.ragged,
        words=rules.words,
        duplicates=rules.duplicates,
        stopwords="none" if rules.words == "tokens" else "nltk",
        labelled=rules.labelled,
        classes=rules.classes,
    )


def check(folder: Path, files: list[oracle.File], rules: oracle.Rules, *, runner: str = "inline") -> None:
    """Preprocess the files, each JSON lines, and compare the dataset with the oracle's."""
    chosen, named = kinds(rules), {False: [], True: []}
    for number, file in enumerate(files):
        (folder / f"{number}.json").write_bytes(file.content)
        named[file.test].append(str(folder / f"{number}.json"))
    reading = ReadingOptions(
        text=("text",), classes=rules.classes, **{"label" if rules.labelled else "rating": "value"}
    )
    inputs = Inputs(files=tuple(named[False]), test=tuple(named[True]), options=reading)
    preprocess_locally(inputs, str(folder / "out"), settings=chosen, runner=runner, max_malformed=1)
    stopwords = None if chosen.stopwords == "none" else NLTK
    assert_equals_oracle(folder / "out", files, stopwords, rules=rules, test_input=bool(named[True]))


def lines(pairs: list[tuple[str, object]], *, test: bool = False) -> oracle.File:
    content = b"".join(json.dumps({"text": text, "value": value}).encode() + b"\n" for text, value in pairs)
    return oracle.File(content, text=("text",), value="value", test=test)


@st.composite
def piles(draw: st.DrawFn) -> tuple[list[oracle.File], oracle.Rules]:
    """Files of at least a text of each label, and the rules for them."""
    values = draw(st.sampled_from([[1, 5, 4, "2"], ["neg", "pos"], ["sports", "3", 3, "__label__world"]]))
    rules = oracle.Rules(
        labelled=values[0] != 1,
        classes=TOPICS if "sports" in values else (),
        ragged="sports" in values or draw(st.booleans()),
        words=draw(st.sampled_from(["letters", "tokens"])),
        duplicates=draw(st.booleans()),
    )
    others = [] if values[0] == "neg" else ["none of them"]
    pairs = st.lists(st.tuples(TEXTS, st.sampled_from([*values, *others])), max_size=12)
    first = [(f"lamp word{chr(97 + number)} shines", values[number % len(values)]) for number in range(20)]
    files = [lines([*first, *draw(pairs)])]
    files += [lines(more, test=draw(st.booleans())) for more in draw(st.lists(pairs.filter(bool), max_size=2))]
    return files, rules


@settings(max_examples=6)
@given(piles())
def test_generated_texts_make_the_oracles_rows_by_every_rule(
    tmp_path_factory: pytest.TempPathFactory, pile: tuple[list[oracle.File], oracle.Rules]
) -> None:
    check(tmp_path_factory.mktemp("generated"), *pile)


@pytest.mark.slow
@settings(max_examples=150)
@given(piles())
def test_much_generated_text_makes_the_oracles_rows_by_every_rule(
    tmp_path_factory: pytest.TempPathFactory, pile: tuple[list[oracle.File], oracle.Rules]
) -> None:
    check(tmp_path_factory.mktemp("much"), *pile)


COPIES = [(f"The {number % 7} lamps (4.5 of {number % 5})", TOPICS[number % 3]) for number in range(300)]
CLASSES = oracle.Rules(labelled=True, classes=TOPICS, ragged=True, words="tokens", duplicates=True)


def test_how_the_input_is_cut_changes_nothing_where_duplicates_are_kept(tmp_path: Path) -> None:
    chosen, digests = kinds(CLASSES), set()
    for pieces in (1, 2, 7):
        folder = tmp_path / str(pieces)
        folder.mkdir()
        for number in range(pieces):
            (folder / f"{number}.json").write_bytes(lines(COPIES[number::pieces]).content)
        inputs = Inputs(files=(str(folder),), options=ReadingOptions(text=("text",), label="value", classes=TOPICS))
        made = preprocess_locally(inputs, str(tmp_path / f"out-{pieces}"), settings=chosen, runner="inline")
        digests.add(made.digest)
    assert len(digests) == 1
    assert (made.counts["distinct"], made.counts["conflicting"]) == (300, 0)


@pytest.mark.slow
def test_tasks_of_their_own_make_the_oracles_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.pipeline.CORE_BYTES", 1)
    check(tmp_path, [lines(COPIES), lines(COPIES[:40], test=True)], CLASSES, runner="local")


def test_fasttexts_files_of_more_than_two_classes_are_whole_in_the_dataset(tmp_path: Path) -> None:
    contents = [
        "".join(f"__label__{label.split()[0]} {text}\n" for text, label in pairs).encode()
        for pairs in (COPIES, COPIES[:30])
    ]
    names = ("world", "__label__sports", "arts", "3")
    for name, content in zip(("train", "test"), contents, strict=True):
        (tmp_path / name).write_bytes(content)
    inputs = Inputs(
        files=(str(tmp_path / "train"),), test=(str(tmp_path / "test"),), options=ReadingOptions(classes=names)
    )
    rules = oracle.Rules(labelled=True, classes=("world", "sports", "arts", "3"), ragged=True, duplicates=True)
    made = preprocess_locally(inputs, str(tmp_path / "out"), settings=kinds(rules), runner="inline")
    files = [oracle.File(content, "fasttext", test=test) for test, content in enumerate(contents)]
    assert_equals_oracle(tmp_path / "out", files, NLTK, rules=rules, test_input=True)
    assert (made.counts["train"], made.counts["test"]) == (300, 30)
    assert made.warnings == ["no text of the sample has the label 'world'; check --classes"]


def test_reviews_with_ratings_may_be_whole_texts_with_duplicates(tmp_path: Path) -> None:
    pairs = [("a fine lamp", 5), ("a fine lamp", 2), ("a fine lamp", 5), ("broke", 1), ("the", 3), ("fine lamp", 4)]
    check(tmp_path, [lines(pairs * 3)], oracle.Rules(ragged=True, duplicates=True))
