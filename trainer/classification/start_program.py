"""A model of fastText's C++ program as one of Shoal's that can go on learning.

It has the words of the file that the rule of words `tokens` can find in a text, and its n-grams, which are hashed to
the same buckets here as there. The program's word for the end of a line, which is no word here, is left out, so the
answers begin nearly, not exactly, as the program's.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from common.errors import DataError, TrainingError
from corpus.reading.formats import FASTTEXT_PREFIX, LABEL_PAIRS, LABELS
from corpus.text import FIRST_WORD, UNKNOWN
from corpus.tokens import END_OF_LINE, is_token
from trainer.classification.losses import CROSS_ENTROPY, SOFTMAX, Loss, Scale
from trainer.classification.program_export import UNKNOWN_WORD
from trainer.classification.trained_model import TrainedModel, fill, unfilled
from trainer.options.classifier_options import ClassifierOptions
from trainer.output.archive import DamagedError
from trainer.output.program_file import ProgramFile, class_names, layers_of, read_program_file

_PAIRS = [tuple(LABELS[code].removeprefix(FASTTEXT_PREFIX) for code in pair) for pair in LABEL_PAIRS]


def read_start_program(path: Path, shown: str) -> TrainedModel:
    """The model in a file; `shown` is its address for messages. Raises TrainingError."""
    content = read_program_file(path, shown)
    names = class_names(content, shown)
    classes = names if len(names) > 2 else []
    order = list(range(len(names))) if classes else [names.index(name) for name in _pair(names, shown)]
    rows = {word: row for row, entry in enumerate(content.words) if (word := _word(entry))}
    options = ClassifierOptions(
        **layers_of(content.vectors.shape[1], content.ngrams, content.char_lengths, content.buckets), dropout=0.0
    )
    state = {"vectors": _vectors(content, list(rows.values())), "last.weight": torch.from_numpy(content.weights[order])}
    loss = Loss(
        kind=SOFTMAX if classes else CROSS_ENTROPY, scale=Scale(0, 1, 1), positive_weight=1.0, classes=len(names)
    )
    described = {
        "name": "fasttext",
        "settings": options.model_settings("fasttext", words=FIRST_WORD + len(rows), outputs=len(names)),
        "loss": loss.plain(),
        "vocabulary": list(rows),
        "words": "tokens",
        "stopwords": [],
        "row_length": None,
        "classes": classes,
        "about": {},
    }
    try:
        return fill(unfilled(described, sum(each.numel() for each in state.values())), state)
    except (DamagedError, DataError, TypeError, ValueError) as error:
        raise TrainingError(f"{shown} is no model that can go on learning: {error}") from error


def _pair(names: Sequence[str], shown: str) -> tuple[str, ...]:
    """Two labels, the negative one first. Raises TrainingError where that cannot be known."""
    for pair in _PAIRS:
        if set(pair) == set(names):
            return pair
    raise TrainingError(
        f"{shown} has the labels {', '.join(names)}, of which it is not clear which is positive; train on its texts "
        "by --model fasttext, with --positive-label"
    )


def _word(entry: bytes) -> str:
    """The word of an entry, as the rule of words finds it in a text; empty if it finds no such word."""
    try:
        word = entry.decode()
    except UnicodeDecodeError:
        return ""
    return word if is_token(word) and entry != END_OF_LINE else ""


def _vectors(content: ProgramFile, rows: Sequence[int]) -> Tensor:
    """The table of vectors: of padding and unknown words, these rows of words, and those of n-grams."""
    first = np.zeros((FIRST_WORD, content.vectors.shape[1]), np.float32)
    unknown = UNKNOWN_WORD.encode()
    if unknown in content.words:
        first[UNKNOWN] = content.vectors[content.words.index(unknown)]
    has_ngrams = content.ngrams > 1 or len(content.char_lengths) > 0
    buckets = content.vectors[len(content.words) :] if has_ngrams else first[:0]
    return torch.from_numpy(np.concatenate([first, content.vectors[rows], buckets]))
