"""Labels for new texts, a block of texts at a time.

Large blocks are fastest: rows of similar length are computed together, and a repeated text is computed once. An answer
must not depend on the other texts of its block: padding must not change it. The answers are in the order of the texts.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from corpus.encoding import EncodedRows, FastEncoder, PlainEncoder
from corpus.text import PADDING, UNKNOWN
from trainer.classification.trained_model import TrainedModel
from trainer.computing.threads import Threads

EncoderT = TypeVar("EncoderT", PlainEncoder, FastEncoder)

_BATCH_WORDS = 1 << 17
"""Words that the model is given at once, with padding: about a thousand of the longest rows. Half as many or twice as
many take as long; an eighth takes a quarter longer."""
_FAST_FROM = 12 << 20
"""From so many letters, or bytes of files, on the fast encoder saves more time than it takes to load."""


class Prediction(NamedTuple):
    """A model's answer for a text: its label, and the probability of each class.

    A text without a word that the model knows (it has only stopwords and unknown words, or no words at all) has the
    label None and equal probabilities: nothing in it speaks for a class.
    """

    label: int | str | None
    """Of two classes 1 (positive) or 0; of classes with names the name."""
    probabilities: tuple[float, ...]
    """In the order of the labels."""

    @property
    def probability(self) -> float:
        """Of a negative and a positive class the probability of label 1; of others that of the label."""
        return max(self.probabilities) if isinstance(self.label, str) else self.probabilities[-1]


class Labeller:
    """Labels texts by a model; words outside its vocabulary count as unknown."""

    def __init__(
        self, model: TrainedModel, threshold: float | None = None, *, expected: int = 0, threads: int = 1
    ) -> None:
        """Of two classes, a text is positive if the probability of that is above `threshold` (default: the model's); of
        classes with names it has the most probable one, and of equally probable ones the first.

        `expected`: about how many letters will come, if known; like `threads`, it affects speed alone. torch itself
        uses one thread from now on.
        """
        torch.set_num_threads(1)
        self._threads = Threads(threads)
        self._model = model
        self._threshold = model.loss.threshold if threshold is None else threshold
        self._letters = expected
        self._encode: PlainEncoder | FastEncoder = _encoder(PlainEncoder, model)

    def __call__(self, texts: Sequence[str]) -> list[Prediction]:
        """The prediction for each text, in their order."""
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        encoded = _of_known_words(self.encoded(list(distinct)))
        probabilities = self._probabilities(encoded)
        found = zip(encoded.lengths.tolist(), self._labels(probabilities), probabilities.tolist(), strict=True)
        predictions = [Prediction(label if length else None, tuple(each)) for length, label, each in found]
        return [predictions[distinct[text]] for text in texts]

    def encoded(self, texts: Sequence[str]) -> EncodedRows:
        """The rows of the texts, as the model reads them."""
        self._letters += sum(map(len, texts))
        if self._letters >= _FAST_FROM and isinstance(self._encode, PlainEncoder):
            self._encode = _encoder(FastEncoder, self._model)
        return self._encode(texts)

    def _labels(self, probabilities: npt.NDArray[np.float64]) -> Sequence[int | str]:
        """The labels of N texts with these probabilities (N, classes)."""
        if names := self._model.classes:
            return [names[label] for label in probabilities.argmax(1).tolist()]
        labels: list[int] = (probabilities[:, 1] > self._threshold).astype(int).tolist()
        return labels

    def _probabilities(self, encoded: EncodedRows) -> npt.NDArray[np.float64]:
        """(N, classes): the probability of each class for each of N texts; equal for a text of length 0."""
        classes = self._model.loss.classes
        probabilities = np.full((len(encoded.lengths), classes), 1 / classes)
        longest_first = np.argsort(-encoded.lengths, kind="stable")[: np.count_nonzero(encoded.lengths)]
        batches, start = [], 0
        while start < len(longest_first):
            longest = int(encoded.lengths[longest_first[start]])
            batches.append(longest_first[start : start + max(1, _BATCH_WORDS // longest)])
            start += len(batches[-1])

        rows = _joined if self._model.classifier.reads_whole_texts else _padded

        def compute(first: int) -> None:
            with torch.inference_mode():
                for some in batches[first :: self._threads.count]:
                    outputs = self._model.classifier(rows(encoded, some), torch.from_numpy(encoded.lengths[some]))
                    probabilities[some] = self._model.loss.probabilities(outputs).double().numpy()

        self._threads.map(compute, range(min(self._threads.count, len(batches))))
        return probabilities


def _encoder(kind: type[EncoderT], model: TrainedModel) -> EncoderT:
    """An encoder of texts by the model's rule of words."""
    return kind(model.ids, model.stopwords, model.row_length, model.words)


def _of_known_words(encoded: EncodedRows) -> EncodedRows:
    """The rows, of which those without a known word have the length 0."""
    known = np.concatenate([[0], np.cumsum(encoded.ids != UNKNOWN)])
    ends = encoded.starts + encoded.lengths
    return encoded._replace(lengths=encoded.lengths * (known[ends] > known[encoded.starts]))


def _joined(encoded: EncodedRows, numbers: npt.NDArray[np.int64]) -> Tensor:
    """(t,) int32: the rows of these numbers (n,), one after the other."""
    lengths = encoded.lengths[numbers]
    before = np.cumsum(lengths) - lengths  # (n,)
    place = np.arange(lengths.sum()) + np.repeat(encoded.starts[numbers] - before, lengths)  # (t,)
    return torch.from_numpy(encoded.ids[place])


def _padded(encoded: EncodedRows, numbers: npt.NDArray[np.int64]) -> Tensor:
    """(n, longest) int32: the rows of these numbers (n,), the longest first."""
    lengths = encoded.lengths[numbers]
    place = np.arange(lengths[0])  # (longest,)
    ids = encoded.ids.take(encoded.starts[numbers, None] + place, mode="clip")  # (n, longest)
    return torch.from_numpy(np.where(place < lengths[:, None], ids, np.int32(PADDING)))
