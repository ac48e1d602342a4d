"""Labels texts with the model in this folder. It needs only NumPy and ONNX Runtime (requirements.txt), not Shoal.

    python predict.py < texts.txt    prints the label, the probability and the text of each line

In Python, `Model().predict(texts)` returns for each text its label and the probabilities of all classes. The label is
None if the model knows no word of the text.
"""

import html
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime

UNKNOWN, FIRST_WORD = 1, 2
BATCH_TEXTS, BATCH_WORDS = 256, 1 << 14


class Model:
    """Classifier of texts, read from a folder."""

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._config = json.loads((folder / "config.json").read_text("utf-8"))
        words = (folder / "vocabulary.txt").read_text("utf-8").split("\n")[:-1]
        self._ids = {word: number for number, word in enumerate(words, FIRST_WORD)}
        self._stopwords = {*self._config["stopwords"]}
        self._words = {"letters": letters, "tokens": tokens}[self._config["words"]]
        self._session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
        self.classes: list[str] = self._config["classes"] or ["negative", "positive"]

    def predict(self, texts: Sequence[str]) -> list[tuple[str | None, list[float]]]:
        """Return the label of each text, or None, and the probability of each class in the order of `classes`."""
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings")
        rows = [self._row(text) for text in texts]
        known = [max(row, default=0) > UNKNOWN for row in rows]
        probabilities = np.full((len(rows), len(self.classes)), 1 / len(self.classes))
        waiting = sorted((number for number, is_known in enumerate(known) if is_known), key=lambda at: len(rows[at]))
        while waiting:
            size = min(BATCH_TEXTS, max(1, BATCH_WORDS // len(rows[waiting[-1]])))
            waiting, some = waiting[:-size], waiting[-size:]
            lengths = np.array([len(rows[number]) for number in some])
            padded = np.zeros((len(some), lengths.max()), np.int32)
            padded[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate([rows[number] for number in some])
            (probabilities[some],) = self._session.run(None, {"tokens": padded, "lengths": lengths})
        labels = probabilities.argmax(1)
        if not self._config["classes"]:
            labels = (probabilities[:, 1] > self._config["loss"]["threshold"]).astype(int)
        names = [self.classes[label] if is_known else None for label, is_known in zip(labels, known, strict=True)]
        return list(zip(names, probabilities.tolist(), strict=True))

    def _row(self, text: str) -> list[int]:
        kept = [word for word in self._words(text) if word not in self._stopwords]
        return [self._ids.get(word, UNKNOWN) for word in kept[: self._config["row_length"]]]


def letters(text: str) -> list[str]:
    """Return the words of a text: the letters a to z in lower case, with apostrophes between them."""
    # html.unescape fails for a number of more than 4,300 digits, which stands for no character.
    text = html.unescape(re.sub("&#[0-9]{4301,};?", "\ufffd", text)).replace("\u2019", "'").lower()
    return [word for run in re.findall("[a-z']+", text) if (word := run.strip("'"))]


def tokens(text: str) -> list[str]:
    """Return the words of a text as fastText's example splits them: each of '.,()!? is a word."""
    if not text.isascii():
        text = re.sub("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]", " ", text.lower())
    lowered = re.sub("[A-Z]", lambda letter: letter[0].lower(), text).replace('"', "").replace("<br />", " ")
    return re.findall(r"['.,()!?]|[^'.,()!?;:\0\s]+", lowered, re.ASCII)


def main() -> None:
    if len(sys.argv) > 1:
        sys.exit("usage: python predict.py < texts.txt")
    model = Model()
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        ((label, probabilities),) = model.predict([text])
        shown = probabilities[1] if len(probabilities) == 2 else max(probabilities)
        sys.stdout.write(f"{label or 'unknown'}\t{shown:.4f}\t{text}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
