"""Options of text classifiers and their loss.

A model file contains some of these settings. When a model file is read, its settings are checked with the same rules.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from common.json_values import Bound
from corpus.text import FIRST_WORD
from trainer.options.section import ABOVE_0, SHARE, Section, from_1_to, option
from trainer.registry import MODELS

_WIDEST, _DEEPEST = 8192, 64
"""Largest width and depth of a model.

Reviews need no larger models, and a model file with wrong sizes must not fill the memory.
"""

_MOST_NGRAMS, _MOST_BUCKETS, _MOST_WORDS = 8, 1 << 28, 2_000_000


@dataclass(frozen=True, kw_only=True)
class ClassifierOptions(Section):
    """Options for the rows, the layers, the dropout and the loss of a text classifier."""

    title: ClassVar[str] = "model"

    train_share: float = option(
        "share of the training rows to learn from, the same rows in every run; validation and test rows do not change",
        default=1.0,
        must=Bound("above 0 and at most 1", lambda share: 0 < share <= 1),
    )
    embedding: int | None = option(
        "dimensions of a word vector (with --embeddings: the dimensions of the pretrained vectors)",
        default=64,
        must=from_1_to(_WIDEST),
    )
    embeddings: str | None = option(
        "start from pretrained word embeddings in word2vec format, text or binary: a path or s3://..., or a folder "
        "with vectors.bin or vectors.txt (default: random vectors). Other words start with random vectors. lstm "
        "then changes word vectors slowly",
        default=None,
        metavar="FILE_OR_DIR",
    )
    vocabulary: int = option(
        "number of words that have their own vector: the most frequent words of the dataset. All other words share "
        "the vector of unknown words. 2000000: every word has its own vector",
        default=_MOST_WORDS,
        must=from_1_to(_MOST_WORDS),
        internal=True,
    )
    hidden: int = option("dimensions of the LSTM's state", default=32, must=from_1_to(_WIDEST))
    layers: int = option("number of LSTM layers", default=1, must=from_1_to(_DEEPEST))
    pooling: str = option(
        "components of a text's vector, joined with +. mean: mean of the states of its words; max: "
        "maximum of these states; words: mean of the word vectors. last: only the state after the last word",
        default="mean+max+words",
        choices=("mean+max+words", "last"),
        internal=True,
    )
    ngrams: int = option(
        "largest number of words in an n-gram; 1: only single words",
        default=2,
        must=from_1_to(_MOST_NGRAMS),
    )
    buckets: int | None = option(
        "for linear, the largest number of n-grams with a weight (default: 4,000,000); for fasttext, the number of "
        "vectors that n-grams share by their hash (default: eight for each n-gram of the training rows, at most "
        "2,000,000)",
        default=None,
        must=from_1_to(_MOST_BUCKETS),
        internal=True,
    )
    dropout: float = option(
        "share of values to drop between LSTM layers, and before the last layer of every model",
        default=0.3,
        must=SHARE,
        internal=True,
    )
    embedding_dropout: float = option(
        "share of dimensions to drop from a text's word vectors", default=0.5, must=SHARE, internal=True
    )
    word_dropout: float = option(
        "share of words to drop from a text each time it is used; at least four words are kept",
        default=0.5,
        must=SHARE,
        internal=True,
    )
    loss: str = option(
        "loss. cross-entropy: of the ratings, or of the labels if the dataset has no ratings; bce: of labels, with "
        "one output for two classes; softmax: of labels, with one output for each class; mse: squared error of the "
        "rating. With more than two classes, bce, cross-entropy and softmax are the same, and mse is not available",
        default="cross-entropy",
        choices=("bce", "cross-entropy", "mse", "softmax"),
    )
    positive_weight: float | None = option(
        "weight of a positive row in the loss, for two classes; a negative row has weight 1 (default: the fourth "
        "root of negatives / positives)",
        default=None,
        must=ABOVE_0,
    )

    metric: str = option(
        "metric for choosing the decision threshold of two classes on the validation rows. accuracy: "
        "threshold 0.5; f1-macro: mean F1 of the classes; balanced: mean recall of the classes. f1-macro and balanced "
        "find more rows of a rare class, but are less accurate",
        default="accuracy",
        choices=("accuracy", "f1-macro", "balanced"),
    )

    def rows_to_learn(self, every: int) -> int:
        """Return the number of rows to train on if the dataset has `every` training rows."""
        return max(1, round(self.train_share * every))

    def model_settings(self, model: str, *, words: int, outputs: int) -> dict[str, Any]:
        """Return the settings with which `models.build` creates a model with `words` word ids and `outputs` outputs per
        row.

        Settings without a value or without an effect on this model are left out.
        """
        values = {name: getattr(self, name) for name in MODELS[model].settings}
        if self.vocabulary == _MOST_WORDS or self.vocabulary + FIRST_WORD >= words:
            values.pop("vocabulary", None)
        return {"words": words, "outputs": outputs, **{name: each for name, each in values.items() if each is not None}}
