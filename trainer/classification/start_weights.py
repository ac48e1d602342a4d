"""What a classifier begins with where it starts from a model: that model's weights, with vectors of new words.

Words that the model does not know get a vector from their parts: the mean of those of the words between its hyphens and
other marks; else of the longest known beginning and end, which in English carry most of a word's meaning (un-, -less);
else that of an unknown word.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from common.errors import TrainingError
from corpus.text import FIRST_WORD, PADDING, UNKNOWN
from trainer.classification.data import TextData
from trainer.classification.start_vectors import sample_tokens

_PART = re.compile(r"[^\W_]+")
_LEAST_PART = 3
"""Characters of a beginning or an end, at least."""


def composed_of(word: str, known: Mapping[str, int]) -> list[int]:
    """The ids of the known parts of a word; of a word without any that of an unknown word."""
    parts = [known[part] for part in _PART.findall(word) if part != word and part in known]
    if parts:
        return parts
    sizes = range(len(word) - 1, _LEAST_PART - 1, -1)
    begins = next((known[word[:size]] for size in sizes if word[:size] in known), None)
    ends = next((known[word[-size:]] for size in sizes if word[-size:] in known), None)
    return [each for each in (begins, ends) if each is not None] or [UNKNOWN]


def with_new_words(table: Tensor, vocabulary: Sequence[str], known: Mapping[str, int]) -> Tensor:
    """(FIRST_WORD + words, size): the rows of padding, the unknown word and a vocabulary, of the table of a model that
    has these words `known`, by their ids."""
    rows = table[[PADDING, UNKNOWN, *(known.get(word, UNKNOWN) for word in vocabulary)]]
    for place, word in enumerate(vocabulary, FIRST_WORD):
        if word not in known:
            rows[place] = table[composed_of(word, known)].mean(0)
    return rows


def require_rule_of_words(address: str, words: str, data: TextData) -> None:
    """Raise TrainingError unless the dataset was made by the rule of words by which a model reads."""
    if words != data.words:
        raise TrainingError(
            f"{address} reads texts by the rule of words '{words}', and the dataset was made by '{data.words}'; "
            f"make it anew by `shoal preprocess --words {words}`, or give --input"
        )


def share_known(data: TextData, known: Mapping[str, int]) -> float:
    """The share of the words in the validation rows of a dataset that are among the `known`."""
    is_known = np.array([False, False, *(word in known for word in data.vocabulary)])
    return float(is_known[sample_tokens(data)].mean())


def describe_test_rows(*, apart: bool | None) -> str:
    """A sentence on whether a model has learnt from the test rows."""
    if apart:
        return "It has not learnt from the test rows"
    return (
        "It has learnt from another dataset, or from texts: whether the test rows are among them is not known, and "
        "if they are, the test measures are too good"
    )
