"""Raw texts become the same dataset as by a plain implementation, or they are refused and no file is written."""

import gzip
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DataError
from corpus import raw_texts
from corpus.dataset import Split, open_dataset
from corpus.dataset_settings import Settings
from corpus.raw_texts import SETTINGS, encode_texts
from corpus.reading.inputs.inspection import inspect_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from corpus.rules import VALIDATION_SHARE, in_test_set
from corpus.text import digest
from corpus.tokens import tokens
from tests.corpus.reading.inputs.beginnings import content_of, written
from tests.reviews import json_lines
from tests.small_disk import NEEDS_A_SMALL_DISK, run_on_small_disk

Review = tuple[str, int]
Row = tuple[list[str], int]

FIRST = 1.2 * VALIDATION_SHARE
UNKNOWN = " "
"""Placeholder for words outside the vocabulary. It is not a word, because no word contains a space."""


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """Make blocks small, so that even a few texts are read in several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("corpus.reading.texts._BLOCK_TEXTS", 16)
        patch.setattr("corpus.reading.batches.BATCH_TEXTS", 8)
        yield


def lines(reviews: Sequence[Review], value: str = "label") -> bytes:
    return json_lines(*({"text": text, value: number} for text, number in reviews))


def some(count: int, label: int | None = None) -> list[Review]:
    """Return different texts, all with the label `label`, or with alternating labels."""
    return [(f"text {n}, of words.", n % 2 if label is None else label) for n in range(count)]


def encode(
    files: Sequence[Path], output: Path, *, test: Sequence[Path] = (), given: Settings = SETTINGS, **how: Any
) -> dict[str, Any]:
    inspection = inspect_inputs(Inputs(files=tuple(map(str, files)), test=tuple(map(str, test))))
    return encode_texts(inspection.sources, inspection.settings(given), output, **{"max_malformed": 0.05, **how})


def rows_of(split: Split, vocabulary: Sequence[str]) -> list[Row]:
    found = split.rows(0, len(split))
    words = ["", UNKNOWN, *vocabulary]
    ends = np.cumsum(found.lengths)
    return [
        ([words[token] for token in found.tokens[end - length : end]], int(label))
        for end, length, label in zip(ends, found.lengths, found.labels, strict=True)
    ]


@dataclass
class Plain:
    """Dataset of some files, computed by the plain rules, one text at a time."""

    train: list[Row]
    test: list[Row]
    vocabulary: list[str]
    empty: int


def plain(files: Sequence[Sequence[Review]], test: Sequence[Review] | None, given: Settings) -> Plain:
    parts: dict[str, list[Row]] = {"first": [], "train": [], "test": []}
    seen: dict[str, None] = {}
    empty = 0
    for number, reviews in enumerate([*files, test or ()]):
        for text, label in reviews:
            words = tokens(text)
            seen.update(dict.fromkeys(words))
            identity = digest(words)
            if not words:
                empty += 1
            elif number == len(files) or (test is None and in_test_set(identity, given.test_share)):
                parts["test"].append((words, label))
            else:
                parts["first" if in_test_set(identity[8:], FIRST) else "train"].append((words, label))
    train = parts["first"] + parts["train"]
    known = list(seen)[: given.vocabulary_size]
    counts = Counter(word for words, _ in train for word in words if word in known)
    vocabulary = sorted(counts, key=lambda word: (-counts[word], word))

    def cut(rows: list[Row]) -> list[Row]:
        return [([word if word in counts else UNKNOWN for word in words], label) for words, label in rows]

    return Plain(cut(train), cut(parts["test"]), vocabulary, empty)


WORDS = st.sampled_from(["good", "Bad", "don't", "4.5", "caf\u00e9", "<br />", '"so"', "!", "\u4e2d\u6587", "x" * 40])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=8)
REVIEWS = st.lists(st.tuples(TEXTS, st.integers(0, 1)), max_size=30)
SURE = some(40)  # enough texts that each part has texts of each class


@settings(max_examples=25, derandomize=True)
@given(st.lists(REVIEWS, min_size=1, max_size=3), REVIEWS | st.none(), st.sampled_from([6, 2_000_000]))
def test_rows_equal_the_plain_implementation(tmp_path, monkeypatch, files, test, vocabulary) -> None:
    monkeypatch.setattr(raw_texts, "_MAX_EXTRA_WORDS", 3)
    files = [SURE + reviews for reviews in files]
    paths = [tmp_path / f"{number}.json" for number in range(len(files))]
    for path, reviews in zip(paths, files, strict=True):
        path.write_bytes(lines(reviews))
    of_test = [tmp_path / "test.json"] if test is not None else []
    if test is not None:
        test = SURE[:2] + test
        of_test[0].write_bytes(lines(test))
    given = replace(SETTINGS, test_share=0.3, vocabulary_size=vocabulary)
    counts = encode(paths, tmp_path / "out.h5", test=of_test, given=given)
    expected = plain(files, test, given)
    with open_dataset(tmp_path / "out.h5") as dataset:
        assert dataset.vocabulary == expected.vocabulary
        assert rows_of(dataset.train, dataset.vocabulary) == expected.train
        assert rows_of(dataset.test, dataset.vocabulary) == expected.test
        assert dataset.counts == counts
        assert dataset.computed_digest() == dataset.digest
    assert (counts["train"], counts["test"]) == (len(expected.train), len(expected.test))
    assert (counts["empty"], counts["lines"]) == (expected.empty, sum(map(len, [*files, test or ()])))
    assert counts["positive_train"] == sum(label for _, label in expected.train)
    assert counts["unknown_tokens"] == sum(words.count(UNKNOWN) for words, _ in expected.train + expected.test)


def test_the_size_of_blocks_does_not_change_the_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.json").write_bytes(lines(some(500)))
    digests = set()
    for texts in (16, 16, 100, 8192):
        monkeypatch.setattr("corpus.reading.texts._BLOCK_TEXTS", texts)
        encode([tmp_path / "in.json"], tmp_path / "out.h5")
        with open_dataset(tmp_path / "out.h5") as dataset:
            digests.add(dataset.digest)
    assert len(digests) == 1


def test_validation_rows_have_both_classes_if_each_file_has_one(tmp_path: Path) -> None:
    for label, name in enumerate(("neg", "pos")):
        reviews = [(f"{name} {n}", label) for n in range(2_000)]
        (tmp_path / f"{name}.json").write_bytes(lines([*reviews, ("the other class", 1 - label)]))
    encode([tmp_path / "neg.json", tmp_path / "pos.json"], tmp_path / "out.h5")
    with open_dataset(tmp_path / "out.h5") as dataset:
        labels = dataset.train.rows(0, len(dataset.train)).labels
    validation = labels[: int(len(labels) * VALIDATION_SHARE)]
    assert 0.3 < validation.mean() < 0.7
    assert labels.mean() == pytest.approx(0.5, abs=0.02)


ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("raw_texts.yaml").read_text())


def encoded(folder: Path, row: dict[str, Any], messages) -> dict[str, Any]:
    """Return the digest of the dataset and the counts above 0, or check the message of the error."""
    for name, content in row["files"].items():
        written(folder, name, content_of(content))
    files, test = (
        [folder / name for name in row["files"] if (name == "test.json") == is_test] for is_test in (False, True)
    )
    try:
        counts = encode(files, folder / "out" / "out.h5", test=test, given=replace(SETTINGS, **row.get("settings", {})))
    except DataError as error:
        messages.check(error)
        return {"refused": True}
    with open_dataset(folder / "out" / "out.h5") as dataset:
        assert dataset.computed_digest() == dataset.digest
        shown = {"digest": dataset.digest, **counts}
    for name in ("malformed_by_reason", "lengths"):
        shown[name] = {kind: number for kind, number in counts[name].items() if number}
    return {name: value for name, value in shown.items() if value and name != "frequent_words"}


@pytest.mark.parametrize("row", ROWS, ids=itemgetter("case"))
def test_raw_texts_are_counted_or_refused_without_output(tmp_path: Path, row: dict[str, Any], messages) -> None:
    assert encoded(tmp_path, row, messages) == row["found"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["out.h5"] * ("digest" in row["found"])


def test_labels_of_more_than_256_classes_are_stored(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"".join(b"__label__c%d text %d\n" % (n % 300, n) for n in range(900)))
    options = ReadingOptions(classes=tuple(f"c{n}" for n in range(300)))
    known = inspect_inputs(Inputs(files=(str(tmp_path / "in.txt"),), options=options))
    counts = encode_texts(known.sources, known.settings(SETTINGS), tmp_path / "out.h5", max_malformed=0.0)
    assert counts["labels"]["before"] == {str(label): 3 for label in range(300)}
    with open_dataset(tmp_path / "out.h5") as dataset:
        rows = rows_of(dataset.train, dataset.vocabulary)
        ratings = dataset.train.rows(0, len(dataset.train)).ratings
    numbers = {int(words[1]): label for words, label in rows}
    assert len(numbers) > 700
    assert {number % 300 for number in numbers} == set(range(300))
    assert all(number % 300 == label for number, label in numbers.items())
    assert (ratings.dtype, ratings.any()) == (np.uint8, False)


def damaged(path: Path, reviews: Sequence[Review]) -> Path:
    path.write_bytes(gzip.compress(lines(reviews), 1)[:-200])
    return path


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """Yield the path for a dataset. Its folder must still be empty after the test."""
    yield tmp_path / "out" / "out.h5"
    assert list((tmp_path / "out").iterdir()) == []


def test_a_damaged_file_is_refused(tmp_path: Path, out: Path) -> None:
    with pytest.raises(DataError, match=r"in\.json\.gz is damaged after"):
        encode([damaged(tmp_path / "in.json.gz", some(2_000))], out)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, out: Path, messages) -> None:
    path = tmp_path / "in.json"
    path.write_bytes(lines(some(2_000)))

    def grow(_: int) -> None:
        with path.open("ab") as file:
            file.write(lines(some(1)))

    with messages.raises(DataError):
        encode([path], out, report=grow)


def test_an_interrupt_leaves_nothing(tmp_path: Path, out: Path) -> None:
    (tmp_path / "in.json").write_bytes(lines(some(200)))
    waiting = []

    def interrupt(_: int) -> None:
        waiting.extend(out.parent.iterdir())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode([tmp_path / "in.json"], out, report=interrupt)
    assert {path.name[:7] for path in waiting} == {".texts-"}  # the temporary folder and its lock file


def test_an_unwritable_folder_is_reported_by_name(tmp_path: Path, messages) -> None:
    (tmp_path / "in.json").write_bytes(lines(some(50)))
    (tmp_path / "file").write_text("")
    with messages.raises(DataError):
        encode([tmp_path / "in.json"], tmp_path / "file" / "cache" / "out.h5")


ENCODE = """
import sys
from pathlib import Path
from common.errors import DataError
from corpus.raw_texts import SETTINGS, encode_texts
from corpus.reading.inputs.inspection import inspect_inputs
from corpus.reading.sources import Inputs
known = inspect_inputs(Inputs(files=(sys.argv[1],)))
try:
    encode_texts(known.sources, known.settings(SETTINGS), Path(sys.argv[2]), max_malformed=0.05)
except DataError as error:
    sys.exit(str(error))
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@NEEDS_A_SMALL_DISK
@pytest.mark.slow
def test_a_full_disk_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    content = lines([(f"word{n} " * 20, n % 2) for n in range(20_000)])
    (tmp_path / "in.json").write_bytes(content)
    (tmp_path / "encode.py").write_text(ENCODE)
    script = f"{sys.executable} encode.py in.json small/out.h5; echo status $?; ls -A small"
    # Stored texts have four bytes per word. The input has eight bytes per word, and so has the dataset.
    done = run_on_small_disk(tmp_path, int(0.7 * len(content) / 2 / 1024), script)
    assert done.stdout == "status 1\n", done.stderr
    assert done.stderr.endswith("choose another --cache\n")
    assert "no space left on the device of small/out.h5" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("words", [30, 300_000])
def test_memory_does_not_grow_with_the_input(tmp_path: Path, words: int) -> None:
    (tmp_path / "encode.py").write_text(ENCODE)
    block = lines(
        [(" ".join(f"{n} w{(n * k) % 50_000}" for k in range(words)), n % 2) for n in range(3_000_000 // words)]
    )
    peaks = []
    for times in (2, 10):
        path = tmp_path / f"{times}.json"
        with path.open("wb") as file:
            for _ in range(times):
                file.write(block)
        command = [sys.executable, "encode.py", path, "out.h5"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
        path.unlink()
    assert peaks[1] < peaks[0] + 20, peaks
