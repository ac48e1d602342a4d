"""A model of Shoal as a file of fastText's C++ program, which then answers as the model does.

- The program ends each line with a word `</s>`, and Shoal has none. The file has it as an entry that is neither a word
  nor a label, and the program leaves it out.
- Words outside the vocabulary have one vector and one hash together in Shoal. In the file the word UNKNOWN_WORD has
  both.
- Of equally probable labels the program takes the last, and Shoal the first class: the labels are the classes in
  reverse.
"""

from pathlib import Path

import numpy as np
import torch

from common.errors import TrainingError
from corpus.reading.formats import FASTTEXT_PREFIX
from corpus.text import BY_RULE, UNKNOWN
from corpus.tokens import END_OF_LINE
from trainer.classification.losses import CROSS_ENTROPY
from trainer.classification.trained_model import TrainedModel
from trainer.output.program_file import SOFTMAX, ProgramFile, write_program_file

UNKNOWN_WORD = "UNKNOWN:uwrpxlp"
"""Its `token_hash` is that of no letters, which words outside the vocabulary have in Shoal. No rule of words finds it
in a text."""


def write_program_model(path: Path, model: TrainedModel) -> None:
    """Write a model of Shoal as a file of the program, which then says of `program_line(model, text)` what the model
    says of the text. Raises TrainingError for a model of which the program cannot say the same."""
    _require_expressible(model)
    vectors, last = (model.classifier.state_dict()[name].cpu().numpy() for name in ("vectors", "last.weight"))
    weights = last / model.loss.temperature
    if len(weights) == 1:  # the log-odds of label 1
        log_odds = model.loss.log_odds(torch.ones(1, 1)).numpy()
        weights = np.concatenate([np.zeros_like(weights), weights * log_odds])
    others = [each.encode() for each in _entries(model)]
    content = ProgramFile(
        words=[UNKNOWN_WORD.encode(), *(word.encode() for word in model.ids)],
        labels=others[:-1],
        ignored=others[-1:],
        loss=SOFTMAX,
        ngrams=model.settings["ngrams"],
        char_lengths=range(0),
        vectors=vectors[UNKNOWN:],
        weights=weights[::-1],
    )
    write_program_file(path, content)


def program_line(model: TrainedModel, text: str) -> str:
    """The words that a model reads of a text, with a space between, and those outside its vocabulary as UNKNOWN_WORD;
    of a text for a model of the program the text on one line."""
    if model.encode is not None:
        return text.replace("\n", " ")
    words, _ = BY_RULE[model.words]
    kept = [word for word in words(text) if word not in model.stopwords][: model.row_length]
    return " ".join(word if word in model.ids else UNKNOWN_WORD for word in kept)


def _entries(model: TrainedModel) -> list[str]:
    """What the program's dictionary has besides words: the labels, and the end of a line."""
    return [*(FASTTEXT_PREFIX + name for name in reversed(model.class_names)), END_OF_LINE.decode()]


def _require_expressible(model: TrainedModel) -> None:
    """Raise TrainingError for a model of which the program cannot say the same."""
    settings, loss = model.settings, model.loss
    reasons = (
        (model.name != "fasttext", f"it is of --model {model.name}, and the program knows fasttext alone"),
        (
            settings.get("char_ngrams") is not None,
            "it has --char-ngrams, and there the program reads the characters of words outside the vocabulary, which "
            "have one vector here",
        ),
        (
            loss.kind == CROSS_ENTROPY and loss.outputs > 2,
            "it adds up the probabilities of ratings, and the program has a label for each output; train it with "
            "--loss bce",
        ),
        (
            not model.classes and loss.threshold != 0.5,
            f"its threshold is {loss.threshold:.3g}, and the program takes the more probable label; train it with "
            "--metric accuracy",
        ),
        (
            bool(taken := [each for each in _entries(model) if each in model.ids]),
            f"its vocabulary has the word {', '.join(taken)}, which is no word to the program",
        ),
    )
    for applies, reason in reasons:
        if applies:
            raise TrainingError(f"the model cannot be written for the fastText program: {reason}")
