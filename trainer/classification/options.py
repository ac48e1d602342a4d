"""Options of text classifiers. The options of a single model are next to it, as in models/lstm_options.py.

A model file contains some of these settings. When a model file is read, its settings are checked with the same rules.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

from common.checked_values import Must, one_of, within
from corpus.dataset_settings import FIXED
from trainer.options.section import Positive, Section, option

EMBEDDINGS: dict[str, Any] = {
    "text": "start from pretrained word embeddings in word2vec format, text or binary: a path or s3://..., or a folder "
    "with vectors.bin or vectors.txt (default: random vectors). Other words start with random vectors. lstm "
    "then changes word vectors slowly",
    "default": None,
    "metavar": "FILE_OR_DIR",
}
NGram = Annotated[int, within(1, 8)]
Buckets = Annotated[int, within(1, 1 << 28)]

NGRAMS: dict[str, Any] = {
    "text": "largest number of words in an n-gram; 1: only single words",
    "setting": True,
}
BUCKETS: dict[str, Any] = {
    "text": "for linear, the largest number of n-grams with a weight (default: 4,000,000); for fasttext, the number of "
    "vectors that n-grams share by their hash (default: eight for each n-gram of the training rows, at most "
    "2,000,000)",
    "default": None,
    "internal": True,
    "setting": True,
}
DROPOUT: dict[str, Any] = {
    "text": "share of values to drop between LSTM layers, and before the last layer of every model",
    "internal": True,
    "setting": True,
}
"""Options that several classifiers have, as arguments of `option`."""


@dataclass(frozen=True, kw_only=True)
class ClassifierOptions(Section):
    """Options of every text classifier, for its rows and its loss."""

    title: ClassVar[str] = "model"
    last: ClassVar[tuple[str, ...]] = ("loss", "positive_weight", "metric")

    train_share: Annotated[float, Must("above 0 and at most 1", lambda share: 0 < share <= 1)] = option(
        "share of the training rows to learn from, the same rows in every run; validation and test rows do not change",
        default=1.0,
    )
    row_length: int = option("", default=FIXED.row_length)
    """Internal. Largest number of words per row in a padded batch. A preset can change it."""
    loss: Annotated[str, one_of(("bce", "cross-entropy", "mse", "softmax"))] = option(
        "loss. cross-entropy: of the ratings, or of the labels if the dataset has no ratings; bce: of labels, with "
        "one output for two classes; softmax: of labels, with one output for each class; mse: squared error of the "
        "rating. With more than two classes, bce, cross-entropy and softmax are the same, and mse is not available",
        default="cross-entropy",
    )
    positive_weight: Positive | None = option(
        "weight of a positive row in the loss, for two classes; a negative row has weight 1 (default: the fourth "
        "root of negatives / positives)",
        default=None,
    )
    metric: Annotated[str, one_of(("accuracy", "f1-macro", "balanced"))] = option(
        "metric for choosing the decision threshold of two classes on the validation rows. accuracy: "
        "threshold 0.5; f1-macro: mean F1 of the classes; balanced: mean recall of the classes. f1-macro and balanced "
        "find more rows of a rare class, but are less accurate",
        default="accuracy",
    )

    def rows_to_learn(self, every: int) -> int:
        """Return the number of rows to train on if the dataset has `every` training rows."""
        return max(1, round(self.train_share * every))

    def model_settings(self, *, words: int, outputs: int) -> dict[str, Any]:
        """Return the settings with which `models.build` creates a model with `words` word ids and `outputs` outputs per
        row.

        Settings without a value or without an effect on this model are left out.
        """
        names = [entry.name for entry in fields(self) if entry.metadata["setting"]]
        values = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {"words": words, "outputs": outputs, **values}
