"""How well a language model predicts texts that it has not learnt from: exactly, each text by itself.

A text is read from its beginning, after an END, with a state of zeros, as a classifier reads it, and its END is
predicted, too."""

from typing import NamedTuple

import numpy as np
import torch

from corpus.text import UNKNOWN
from trainer.classification.rows import Rows
from trainer.language.model import END, LanguageModel
from trainer.language.softmax import exact_loss
from trainer.order import IntArray
from trainer.pretraining.streams import text_tokens

_TOKENS = 1 << 14
"""Tokens of a batch, about."""
_TIMES = 512
"""Longer texts are read in pieces, each from the state after the one before."""


class Prediction(NamedTuple):
    """Sums over some texts."""

    loss: float
    """In nats; the mean of both directions."""
    tokens: int
    """With the ENDs."""
    unknown: int
    """Of them, those that are not in the vocabulary."""


def predict_texts(model: LanguageModel, rows: Rows, numbers: IntArray) -> Prediction:
    """Predict the texts `numbers` (n,) of `rows`."""
    words = model.settings.words
    loss, tokens, unknown = 0.0, 0, 0
    by_length = numbers[np.argsort(rows.lengths[numbers], kind="stable")]
    begin = 0
    while begin < len(by_length):
        end = begin + max(1, _TOKENS // (int(rows.lengths[by_length[begin]]) + 1))
        end = begin + max(1, _TOKENS // (int(rows.lengths[by_length[min(end, len(by_length)) - 1]]) + 1))
        texts = [text_tokens(rows, int(number)).astype(np.int64) for number in by_length[begin:end]]
        for text in texts:
            text[text >= words] = UNKNOWN
        tokens += sum(len(text) + 1 for text in texts)
        unknown += sum(int(np.count_nonzero(text == UNKNOWN)) for text in texts)
        loss += _loss(model, texts)
        begin = end
    return Prediction(loss, tokens, unknown)


@torch.inference_mode()
def _loss(model: LanguageModel, texts: list[IntArray]) -> float:
    device = model.embedding.weight.device
    lengths = np.array([len(text) for text in texts])
    of_directions = []
    for direction in model.settings.directions:
        read = np.full((lengths.max() + 2, len(texts)), END, np.int64)  # END, the text, END
        for column, text in enumerate(texts):
            read[1 : len(text) + 1, column] = text if direction == "forward" else text[::-1]
        of_directions.append(torch.from_numpy(read).to(device))
    real = torch.arange(int(lengths.max()) + 1)[:, None] <= torch.from_numpy(lengths)  # (times, texts)
    real = real.to(device)
    total, states = 0.0, None
    for first in range(0, len(real), _TIMES):
        times = slice(first, min(first + _TIMES, len(real)))
        outputs, states = model([read[times] for read in of_directions], states)
        for found, tokens in zip(outputs, of_directions, strict=True):
            targets = tokens[times.start + 1 : times.stop + 1]
            learnt = real[times]
            total += exact_loss(found[learnt], targets[learnt], *model.outputs).item()
    return total / len(of_directions)
