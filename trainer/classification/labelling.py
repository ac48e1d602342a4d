"""Labels for new texts, a block of texts at a time.

Large blocks are fastest: rows of similar length are computed together, and a repeated text is computed once. An answer
must not depend on the other texts of its block: padding must not change it. The answers are in the order of the texts.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpus.encoding import EncodedRows, FastEncoder, PlainEncoder
from corpus.text import PADDING
from trainer.classification.model_file import TrainedModel
from trainer.computing.threads import Threads

_BATCH_WORDS = 1 << 17
"""Words that the model is given at once, with padding: about a thousand of the longest rows. Half as many or twice as
many take as long; an eighth takes a quarter longer."""
_FAST_FROM = 12 << 20
"""From so many letters, or bytes of files, on the fast encoder saves more time than it takes to load."""


class Prediction(NamedTuple):
    """A model's answer for a text: label 1 (positive) or 0, and the probability of label 1.

    A text that keeps no word (it has only stopwords, or no words at all) has the label None and the probability one
    half. Training never saw such texts either.
    """

    label: int | None
    probability: float


class Labeller:
    """Labels texts by a model; words outside its vocabulary count as unknown."""

    def __init__(self, model: TrainedModel, threshold: float = 0.5, *, expected: int = 0, threads: int = 1) -> None:
        """A text is positive if the probability of that is above `threshold`.

        `expected`: about how many letters will come, if known; like `threads`, it affects speed alone. torch itself
        uses one thread from now on.
        """
        torch.set_num_threads(1)
        self._threads = Threads(threads)
        self._model = model
        self._threshold = threshold
        self._letters = expected
        self._encode: PlainEncoder | FastEncoder = PlainEncoder(model.ids, model.stopwords, model.row_length)

    def __call__(self, texts: Sequence[str]) -> list[Prediction]:
        """The prediction for each text, in their order."""
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        encoded = self._encoded(list(distinct))
        predictions = [
            Prediction(int(probability > self._threshold) if length else None, probability)
            for length, probability in zip(encoded.lengths.tolist(), self._probabilities(encoded), strict=True)
        ]
        return [predictions[distinct[text]] for text in texts]

    def _encoded(self, texts: Sequence[str]) -> EncodedRows:
        self._letters += sum(map(len, texts))
        if self._letters >= _FAST_FROM and not isinstance(self._encode, FastEncoder):
            self._encode = FastEncoder(self._model.ids, self._model.stopwords, self._model.row_length)
        return self._encode(texts)

    def _probabilities(self, encoded: EncodedRows) -> list[float]:
        """The probability of label 1 for each of N texts; one half for a text without words."""
        probabilities = np.full(len(encoded.lengths), 0.5)
        longest_first = np.argsort(-encoded.lengths, kind="stable")[: np.count_nonzero(encoded.lengths)]
        batches, start = [], 0
        while start < len(longest_first):
            longest = int(encoded.lengths[longest_first[start]])
            batches.append(longest_first[start : start + max(1, _BATCH_WORDS // longest)])
            start += len(batches[-1])

        def compute(first: int) -> None:
            with torch.inference_mode():
                for some in batches[first :: self._threads.count]:
                    outputs = self._model.classifier(_padded(encoded, some), torch.from_numpy(encoded.lengths[some]))
                    probabilities[some] = torch.sigmoid(self._model.loss.log_odds(outputs)).double().numpy()

        self._threads.map(compute, range(min(self._threads.count, len(batches))))
        return probabilities.tolist()


def _padded(encoded: EncodedRows, numbers: npt.NDArray[np.int64]) -> Tensor:
    """(n, longest) int32: the rows of these numbers (n,), the longest first."""
    lengths = encoded.lengths[numbers]
    place = np.arange(lengths[0])  # (longest,)
    ids = encoded.ids.take(encoded.starts[numbers, None] + place, mode="clip")  # (n, longest)
    return torch.from_numpy(np.where(place < lengths[:, None], ids, np.int32(PADDING)))
