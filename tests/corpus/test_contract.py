"""The contract's slow implementation (tests/oracle.py) for ragged rows, kept duplicates and named classes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from corpus.counts import final_counts
from corpus.dataset import DatasetWriter, RowBlock, open_dataset
from corpus.dataset_settings import Settings
from tests import oracle


def labelled(*texts_and_labels: tuple[str, str]) -> list[oracle.File]:
    content = b"".join(f"{label} {text}\n".encode() for text, label in texts_and_labels)
    return [oracle.File(content, "fasttext")]


PILE = labelled(
    ("Good lamp, GOOD light", "__label__b"),
    ("bad", "__label__c"),
    ("Good lamp, GOOD light", "__label__a"),
    ("a lamp (of 3) isn't \u00c9", "__label__c"),
    ("...", "__label__a"),
)


def test_the_contracts_ragged_rows_are_its_fixed_ones_without_the_cut() -> None:
    lines = [{"reviewText": f"lamp{'s' * (number % 3)} " * (number % 7), "overall": 5} for number in range(40)]
    pile = ["\n".join(map(json.dumps, lines)).encode()]
    fixed, words, counts = oracle.dataset(pile, set(), row_length=3, test_share=0.5)
    whole, same_words, whole_counts = oracle.dataset(pile, set(), test_share=0.5, rules=oracle.Rules(ragged=True))
    assert words == same_words
    assert (counts["cut"] > 0, whole_counts["cut"]) == (True, 0)
    for split in ("train", "test"):
        each = np.split(whole[f"{split}/tokens"], whole[f"{split}/ends"][:-1])
        assert [row[:3].tolist() for row in each] == [row[row > 0].tolist() for row in fixed[f"{split}/tokens"]]
        assert np.array_equal(whole[f"{split}/labels"], fixed[f"{split}/labels"])


def test_the_contract_keeps_duplicates_words_and_classes_and_its_rows_can_be_written_and_read(tmp_path: Path) -> None:
    rules = oracle.Rules(labelled=True, classes=("a", "b", "c"), ragged=True, words="tokens", duplicates=True)
    arrays, words, counts = oracle.dataset(PILE, None, test_share=0.0, rules=rules)
    assert {",", "(", "3", "'", "isn", "\u00c9", "good"} <= set(words)
    texts = [
        (" ".join(words[number - 2] for number in row), label)
        for row, label in zip(
            np.split(arrays["train/tokens"], arrays["train/ends"][:-1]), arrays["train/labels"].tolist(), strict=True
        )
    ]
    assert sorted(texts) == [
        (". . .", 0),
        ("a lamp ( of 3 ) isn ' t \u00c9", 2),
        ("bad", 2),
        ("good lamp , good light", 0),
        ("good lamp , good light", 1),
    ]
    assert texts.index(("good lamp , good light", 0)) + 1 == texts.index(("good lamp , good light", 1))
    assert counts["labels"] == {when: {"0": 2, "1": 1, "2": 2} for when in ("before", "after")}
    kind = Settings(ragged=True, words="tokens", duplicates=True, labelled=True, classes=("a", "b", "c"))
    flat = {name: counts[name] for name in ("lines", "texts", "distinct", "train", "tokens")}
    flat.update(
        {f"codes.{when}.{label}": n for when in counts["labels"] for label, n in counts["labels"][when].items()}
    )
    flat.update({f"lengths.{least}": n for least, n in counts["lengths"].items()})
    final = final_counts(flat, settings=kind, positive_from=0, frequent_words=[(word, 1) for word in words])
    lengths = np.diff(arrays["train/ends"], prepend=0)
    block = RowBlock(arrays["train/tokens"], lengths, arrays["train/labels"], arrays["train/ratings"])
    with DatasetWriter(tmp_path / "d.h5", kind) as writer:
        writer.append("train", block)
        writer.finish(vocabulary=words, stopwords=frozenset(), counts=final)
    with open_dataset(tmp_path / "d.h5") as dataset:
        assert dataset.counts["labels"]["after"] == {"0": 2, "1": 1, "2": 2}
        assert "positive_train" not in dataset.counts
        for name, array in dataset.train.arrays.items():
            assert array.dtype == arrays[f"train/{name}"].dtype
            assert np.array_equal(array[:], arrays[f"train/{name}"])


def test_texts_of_test_files_stay_tests_where_duplicates_are_kept() -> None:
    files = [*PILE, replace(PILE[0], test=True)]
    rules = oracle.Rules(labelled=True, classes=("a", "b", "c"), ragged=True, words="tokens", duplicates=True)
    _, _, counts = oracle.dataset(files, None, rules=rules, test_input=True)
    assert (counts["train"], counts["test"], counts["distinct"]) == (5, 5, 10)
