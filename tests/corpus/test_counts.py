"""Flat counts of tasks become a dataset's counts. Contradictions between them reveal lost or duplicated records."""

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import DataError
from corpus.counts import final_counts
from corpus.dataset_settings import Settings
from tests.corpus.reading.inputs.beginnings import tuples

TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("counts.yaml").read_text())
FLAT: dict[str, int] = TABLE["sums"]


def counts(case: dict[str, Any]) -> dict[str, Any]:
    usual = {} if case.get("settings", {}).get("ragged") else {"row_length": 4}
    settings = Settings(**usual, **tuples(case.get("settings", {})))
    words = [(word, number) for word, number in case.get("words", [])]
    return final_counts({**FLAT, **case["changed"]}, settings=settings, positive_from=4, frequent_words=words)


@pytest.mark.parametrize("case", TABLE["published"], ids=itemgetter("case"))
def test_counts_are_published_in_one_order_with_zeros(case: dict[str, Any]) -> None:
    assert json.dumps(counts(case)) == json.dumps(case["published"])


def test_twenty_frequent_words_are_published_without_stopwords_and_punctuation() -> None:
    words = [[f"w{number}", 100 - number] for number in range(30)]
    frequent = [[word, 200] for word in (".", "the", "and", "!", "a", "don't", "t")]
    assert counts({"changed": {}, "words": [*frequent, *words]})["frequent_words"] == words[:20]


@pytest.mark.parametrize("changed", TABLE["refused"], ids=str)
def test_counts_that_contradict_each_other_are_refused(changed: dict[str, int], messages) -> None:
    with messages.raises(DataError):
        counts({"changed": changed})
