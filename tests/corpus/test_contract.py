"""The contract's slow implementation (tests/oracle.py), against a dataset made by hand."""

from dataclasses import replace

import numpy as np

from tests import oracle


def labelled(*texts_and_labels: tuple[str, str]) -> oracle.File:
    content = b"".join(f"{label} {text}\n".encode() for text, label in texts_and_labels)
    return oracle.File(content, "fasttext")


PILE = labelled(
    ("Good lamp, GOOD light", "__label__b"),
    ("bad", "__label__c"),
    ("Good lamp, GOOD light", "__label__a"),
    ("a lamp (of 3) isn't \u00c9", "__label__c"),
    ("...", "__label__a"),
)


RULES = oracle.Rules(labelled=True, classes=("a", "b", "c"), ragged=True, words="tokens", duplicates=True)


def test_the_contract_keeps_duplicates_words_and_classes() -> None:
    arrays, words, counts = oracle.dataset([PILE], None, test_share=0.0, rules=RULES)
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
    assert counts["cut"] == 0


def test_texts_of_test_files_stay_tests_where_duplicates_are_kept() -> None:
    _, _, counts = oracle.dataset([PILE, replace(PILE, test=True)], None, rules=RULES, test_input=True)
    assert (counts["train"], counts["test"], counts["distinct"]) == (5, 5, 10)
