"""Prediction as it is usually written: `python -m benchmarks.peers.plain_predict MODEL FILE...`.

Shoal's own code reads the files and computes the model. The rest is plain: words one at a time by a regular expression
and a dictionary, rows padded to the longest of a few hundred texts, in the order of reading.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from bootstrap.prediction.texts import find_text_files, read_text_files
from corpus.dataset_settings import Settings
from corpus.reading.sources import ReadingOptions
from corpus.reading.tally import Tally
from corpus.text import PADDING, encode_words, words
from trainer.classification.loading import load_model
from trainer.classification.trained_model import TrainedModel

_SPACES = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029), " ")


def main(arguments: Sequence[str]) -> None:
    """Print a line a text."""
    path, *files = arguments
    model = load_model(Path(path))
    for batch in read_text_files(find_text_files(files, ReadingOptions(), Settings()), Tally()):
        for text, probability in zip(batch.texts, probabilities(model, batch.texts), strict=True):
            label = "positive" if probability > model.loss.threshold else "negative" if probability >= 0 else "unknown"
            sys.stdout.write(f"{label}\t{abs(probability):.4f}\t{text.translate(_SPACES)}\n")


def probabilities(model: TrainedModel, texts: Sequence[str]) -> list[float]:
    """The probability of label 1 for each text; -0.5 for a text without words."""
    rows = [encode_words(words(text), model.ids, model.stopwords, model.row_length) for text in texts]
    numbers = sorted((number for number, row in enumerate(rows) if row), key=lambda number: -len(rows[number]))
    found = [-0.5] * len(texts)
    if not numbers:
        return found
    lengths = torch.tensor([len(rows[number]) for number in numbers])
    tokens = torch.full((len(numbers), int(lengths[0])), PADDING, dtype=torch.int32)
    for place, number in enumerate(numbers):
        tokens[place, : len(rows[number])] = torch.tensor(rows[number], dtype=torch.int32)
    with torch.inference_mode():
        said = model.loss.probabilities(model.classifier(tokens, lengths))[:, 1].tolist()
    for number, probability in zip(numbers, said, strict=True):
        found[number] = probability
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
