"""Options of text classifiers and their loss.

A model file contains some of these settings. They are checked by the same rules when a file is read.
"""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from corpus.text import FIRST_WORD
from trainer.options.section import ABOVE_0, SHARE, Bound, Section, from_1_to, option
from trainer.registry import MODELS

_WIDEST, _DEEPEST = 8192, 64
"""Limits of model sizes: a model file with wrong sizes must not fill the memory, and reviews need no larger models."""

_MOST_NGRAMS, _MOST_BUCKETS, _MOST_WORDS = 8, 1 << 28, 2_000_000


def char_lengths(text: str) -> range:
    """Return the lengths of character n-grams for a value of `--char-ngrams`: 3-6 gives 3, 4, 5 and 6. An invalid value
    gives an empty range."""
    found = re.fullmatch("([1-9])-([1-9])", text)
    return range(int(found[1]), int(found[2]) + 1) if found else range(0)


_CHARS = Bound(
    "the fewest and most characters of an n-gram, from 1 to 9, such as 3-6", lambda text: len(char_lengths(text)) > 0
)


@dataclass(frozen=True, kw_only=True)
class ClassifierOptions(Section):
    """Layers, dropout and loss of a text classifier."""

    title: ClassVar[str] = "model"

    embedding: int | None = option(
        "dimensions of a word vector; with --embeddings those of its vectors", default=64, must=from_1_to(_WIDEST)
    )
    embeddings: str | None = option(
        "start from word embeddings that were learnt before, in the format of word2vec, text or binary: a path or "
        "s3://..., or a folder with a vectors.bin or vectors.txt. Words without a vector start as all do else. "
        "--word-rate of lstm is then 0.02 (default: random vectors)",
        default=None,
        metavar="FILE_OR_DIR",
    )
    vocabulary: int = option(
        "the words that have a vector, the most frequent ones; all others are unknown; 2000000: all",
        default=_MOST_WORDS,
        must=from_1_to(_MOST_WORDS),
    )
    hidden: int = option("dimensions of the state", default=32, must=from_1_to(_WIDEST))
    layers: int = option("layers, one upon the other", default=1, must=from_1_to(_DEEPEST))
    pooling: str = option(
        "the parts of a text's vector: the mean of its words' states, their largest value in each dimension, and the "
        "mean of the words' own vectors (mean+max+words); some of these; or the state after its last word (last)",
        default="mean+max+words",
        choices=("mean+max+words", "mean+words", "mean", "last"),
    )
    ngrams: int = option(
        "the most words of an n-gram; 1: words alone",
        default=2,
        must=from_1_to(_MOST_NGRAMS),
    )
    char_ngrams: str | None = option(
        "the fewest and most characters of the n-grams of a word's characters, such as 3-6; words "
        "with common parts then have something in common (default of linear: 2-5; of fasttext: none)",
        default=None,
        must=_CHARS,
        metavar="MIN-MAX",
    )
    buckets: int | None = option(
        "of linear the most n-grams with a weight (default: 4,000,000); of fasttext the number of vectors that n-grams "
        "share, by their hash (default: eight for each n-gram of the training rows, at most 2,000,000)",
        default=None,
        must=from_1_to(_MOST_BUCKETS),
    )
    dropout: float = option(
        "share of values dropped between layers of an LSTM, and before the last layer of all",
        default=0.3,
        must=SHARE,
    )
    embedding_dropout: float = option("share of dimensions dropped from a text's word vectors", default=0.5, must=SHARE)
    word_dropout: float = option(
        "share of words dropped from a text each time it is seen; at least four are kept", default=0.5, must=SHARE
    )
    loss: str = option(
        "the loss: cross-entropy of the ratings (of the labels if the dataset has no ratings) or of the labels, with "
        "one output for two classes (bce) or an output for each class (softmax), or the squared error of the rating "
        "(mse); of more than two classes bce, cross-entropy and softmax are the same, and there is no mse",
        default="cross-entropy",
        choices=("bce", "cross-entropy", "mse", "softmax"),
    )
    positive_weight: float | None = option(
        "weight of a positive row in the loss, for two classes; 1: that of a negative one (default: the fourth root of "
        "negatives / positives)",
        default=None,
        must=ABOVE_0,
    )

    metric: str = option(
        "by what the decision threshold of two classes is chosen on the validation rows, and --model auto chooses: "
        "accuracy, with a threshold of 0.5; f1-macro, the mean F1 of the classes, or balanced, their mean recall, with "
        "the threshold where it is highest, which finds more rows of a rare class, and is less accurate",
        default="accuracy",
        choices=("accuracy", "f1-macro", "balanced"),
    )

    def model_settings(self, model: str, *, words: int, outputs: int) -> dict[str, Any]:
        """Return the settings of a model for `models.build`, with `words` word ids and `outputs` outputs per row.

        Unset settings and settings without effect are left out.
        """
        values = {name: getattr(self, name) for name in MODELS[model].settings}
        if self.vocabulary == _MOST_WORDS or self.vocabulary + FIRST_WORD >= words:
            values.pop("vocabulary", None)
        return {"words": words, "outputs": outputs, **{name: each for name, each in values.items() if each is not None}}
