"""Rows of the dataset of before, which a classifier that goes on learning learns again, so that it forgets less
(rehearsal: Robins 1995).

Do not let test rows come in: a text may be a training row of the old dataset and a test row of the new one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from common.errors import TrainingError
from corpus.reading.storage import readable
from corpus.text import DIGEST_BYTES, word_ids
from trainer.classification.data import TextData, load_data
from trainer.classification.losses import CROSS_ENTROPY, MSE
from trainer.classification.renumbering import flat_rows, ids_of
from trainer.classification.rows import Rows, TextRows
from trainer.config import TrainConfig

_SEED = 7
"""Beside that of the run."""


@dataclass(frozen=True, kw_only=True)
class OldRows:
    """Rows to learn again."""

    data: TextData
    """The old dataset; its training rows are those to learn."""
    left_out: int
    """Rows that equal a validation or test row of the new dataset."""
    note: str
    """A sentence for the user."""


def find_old_rows(config: TrainConfig, data: TextData) -> OldRows:
    """The rows of --old-data that go with the training rows of `data`: at most --old-share for each of them, drawn by
    the seed. Raises TrainingError and DataError."""
    address = config.old_data
    assert address is not None
    with readable(address) as path:
        old = load_data(path).read_to(config.row_length)
    _require_alike(config, old, data)
    rows = old.training
    equal = _equal_rows(old, data)
    drawn = np.random.default_rng([config.seed, _SEED]).permutation(len(rows))
    kept = drawn[~equal[drawn]][: round(config.old_share * len(data.training))]
    left_out = int(equal.sum())
    rows = rows.chosen(np.sort(kept))
    if data.scale != old.scale:
        rows = replace(rows, ratings=rows.labels)
    return OldRows(
        data=replace(old, training=rows),
        left_out=left_out,
        note=f"{len(rows):,} training rows of {address} are learnt again beside {len(data.training):,} new ones; "
        f"{left_out:,} of its rows equal validation or test rows of the new dataset, and are left out.",
    )


def _require_alike(config: TrainConfig, old: TextData, data: TextData) -> None:
    if (old.words, old.stopwords) != (data.words, data.stopwords):
        raise TrainingError(
            f"--old-data {config.old_data} has other rules of words or other stopwords than the new dataset; make one "
            "of them anew with the other's settings"
        )
    by_rating = config.loss in (CROSS_ENTROPY, MSE) and not data.classes
    if by_rating and data.scale not in (old.scale, (0, 1, 1)):
        raise TrainingError(
            f"--old-data {config.old_data} has ratings from {old.scale.low} to {old.scale.high}, and the new dataset "
            f"from {data.scale.low} to {data.scale.high}, which cannot be learnt together; leave out --old-data"
        )


def _equal_rows(old: TextData, data: TextData) -> npt.NDArray[np.bool_]:
    """(old training rows,): which have the words of a validation or test row of `data`, as far as both datasets know
    and keep them."""
    cuts = [each.tokens.shape[1] for each in (old.training, data.training) if isinstance(each, TextRows)]
    most = min(cuts) if cuts else None
    has = set(old.vocabulary)
    both = {word: each for word, each in word_ids(data.vocabulary).items() if word in has}
    held_out = {each for rows in (data.validation, data.test) for each in _keys(rows, data, both, most)}
    return np.array([each in held_out for each in _keys(old.training, old, both, most)], np.bool_)


def _keys(rows: Rows, data: TextData, known: Mapping[str, int], most: int | None) -> Iterator[bytes]:
    """The identity of each row, by its first `most` words, of those that are `known`."""
    ids = ids_of(data.vocabulary, known).astype(np.uint32)
    for tokens, ends in flat_rows(rows):
        own, start = ids[tokens], 0
        for end in ends.tolist():
            stop = end if most is None else min(end, start + most)
            yield blake2b(own[start:stop].tobytes(), digest_size=DIGEST_BYTES).digest()
            start = end
