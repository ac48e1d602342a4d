"""Rows of three classes, the last of which is rare."""

import numpy as np

from trainer.classification.data import TextData, TextRows
from trainer.classification.losses import Scale
from trainer.config import TrainConfig

CLASSES = ("books", "films", "songs")
LENGTH = 8


def some_rows(count: int, *, seed: int) -> TextRows:
    """Rows of 1 to 8 words, half of which tell the class; 1 row in 25 is mislabelled."""
    generator = np.random.default_rng(seed)
    labels = generator.choice(3, count, p=(0.5, 0.4, 0.1))
    lengths = generator.integers(1, LENGTH + 1, count)
    telling = generator.random((count, LENGTH)) < 0.5
    telling[:, 0] = True
    own = 2 + 5 * labels[:, None] + generator.integers(0, 5, (count, LENGTH))
    plain = generator.integers(17, 22, (count, LENGTH))
    tokens = np.where(np.arange(LENGTH) < lengths[:, None], np.where(telling, own, plain), 0)
    wrong = generator.random(count) < 0.04
    labels = np.where(wrong, (labels + 1) % 3, labels).astype(np.uint8)
    return TextRows(tokens=tokens.astype(np.uint16), lengths=lengths.astype(np.uint16), labels=labels, ratings=labels)


def load(config: TrainConfig, *_: object, **__: object) -> TextData:
    """The data of the run, whatever dataset it names."""
    return TextData(
        training=some_rows(2000, seed=0),
        validation=some_rows(100, seed=1),
        test=some_rows(400, seed=2),
        vocabulary=[f"word{letter}" for letter in "abcdefghijklmnopqrst"],
        stopwords=frozenset(),
        row_length=LENGTH,
        scale=Scale(0, 1, 1),
        rating_steps=1,
        rating_fraction=False,
        digest="0" * 32,
        classes=CLASSES,
    )
