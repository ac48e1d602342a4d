"""Word embeddings that were learnt before, as the start of a classifier's.

What all of the vectors have in common is left out, because it tells no word from another (Mu and Viswanath 2018,
"All-but-the-Top"), and it may be most of them. Then they are multiplied by one number, so that they are on average as
long as the model's random ones, for which its learning rate and dropout were chosen: no word is to count more because
it has a vector.
"""

import numpy as np
import torch
from torch import Tensor

from common.display import plural
from common.errors import TrainingError
from corpus.text import FIRST_WORD
from trainer.classification.data import StartVectors, TextData
from trainer.embeddings.vectors import open_vectors

_SAMPLE = 10_000
"""Rows of which the share of words with a vector is reported."""
_TINY = 1e-12


def find_start_vectors(address: str, data: TextData, *, size: int | None) -> StartVectors:
    """The vectors that a file or folder (`vectors.open_vectors`) has of the words of `data`, exactly or in lower case.

    Raises DataError for a file that cannot be read, and TrainingError for vectors that are not of `size` (None: of any
    size), or of none of the words.
    """
    known = open_vectors(address)
    has = known.matrix.shape[1]
    if size not in (None, has):
        raise TrainingError(
            f"--embedding is {size}, but the vectors in {address} have {plural(has, 'dimension')}; leave out "
            "--embedding, or give other vectors"
        )
    rows = [known.find(word) for word in data.vocabulary]
    ids = np.array([FIRST_WORD + number for number, row in enumerate(rows) if row is not None], np.int64)
    if not len(ids):
        raise TrainingError(f"{address} has a vector of none of the dataset's words; give vectors of its language")
    return StartVectors(ids, known.matrix[[row for row in rows if row is not None]], known.note)


def describe_start_vectors(address: str, data: TextData, start: StartVectors) -> str:
    """A sentence on how many words start with a vector, for the user."""
    rows = data.validation
    sample = rows.whole_batch(np.arange(min(len(rows), _SAMPLE)), torch.device("cpu"))
    share = np.isin(sample.tokens.numpy(), start.ids).mean()
    return (
        f"{len(start.ids):,} of {plural(len(data.vocabulary), 'word')} start with the vectors in {address}; they are "
        f"{share:.1%} of the words in the validation rows{'; ' * bool(start.note)}{start.note}"
    )


def set_start_vectors(table: Tensor, start: StartVectors) -> None:
    """Replace the rows of these words in a model's table of random vectors, which the first words have."""
    known = start.ids < len(table)
    vectors, ids = torch.from_numpy(start.vectors[known]).to(table), torch.from_numpy(start.ids[known]).to(table.device)
    vectors = vectors - vectors.mean(0)
    with torch.no_grad():
        table[ids] = vectors * (_length(table[ids]) / _length(vectors).clamp(min=_TINY))


def _length(vectors: Tensor) -> Tensor:
    """The root of the mean square of vectors' lengths."""
    return vectors.square().sum(1).mean().sqrt()
