"""The model card, README.md in a model's folder: what the model is, how good it is, how to use it, and its limits.

It is written from the other files alone, and is for people; nothing reads it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from common.display import printable_lines
from trainer.classification.trained_model import TrainedModel
from trainer.output.run_files import ONNX, VOCABULARY

_CLASSES_NAMED = 8
"""More classes are counted in the title, and named below it."""
_ACCURACY, _MAJORITY = "accuracy", "majority"
_NO_THRESHOLD = "none: the most probable class counts"
_SETTINGS = ("temperature", "threshold")
"""Values beside the measures that are not measures."""

_RULES = {
    "letters": "HTML entities decoded once, lower case, runs of a-z and inner apostrophes; digits, other punctuation "
    "and other letters are not read",
    "tokens": "letters a-z in lower case; each of `'.,()!?` is a word of its own; `\"` is not read; `<br />`, `;`, `:` "
    "and white space separate words, of which all other characters are part",
}
"""What each rule of words reads."""

_USE = """\
## Use

```
shoal predict --model FOLDER reviews.csv
```

`FOLDER` is this folder, or its copy on S3 (`s3://bucket/prefix`). From Python:

```python
from shoal import load_model

model = load_model("FOLDER")
predictions = model.predict(["It broke after a week."])
```
"""

_ONNX = """\
## {file}

For programs without PyTorch. It has two inputs:

- `tokens`, int32 (rows, width): the ids of each row's words, padded with 0 at the end. The words are those of the
  rule above, without the stopwords of `config.json`: {length} of each text. The id of a word is its line in
  `{vocabulary}`, counted from 2; that of any other word is 1.
- `lengths`, int64 (rows,): the number of words in each row, at least 1.

Its output `probabilities`, float32 (rows, {classes}), has the calibrated probability of each class in the order above.
{label}
"""


def model_card(model: TrainedModel, config: Mapping[str, Any]) -> str:
    files = config["files"]
    classes = model.class_names
    weights = sum(each.numel() for each in model.classifier.parameters())
    length = "all words" if model.row_length is None else f"the first {model.row_length:,} kept words"
    facts = [
        ("model", f"`{model.name}`: {', '.join(f'{name} {value}' for name, value in model.settings.items())}"),
        ("classes", ", ".join(f"{label} {name}" for label, name in enumerate(classes))),
        ("loss", model.loss.kind),
        ("temperature", f"{model.loss.temperature:.4g}, by which the logits are divided before they are probabilities"),
        ("threshold", _NO_THRESHOLD if model.classes else f"{model.loss.threshold:.4g}"),
        ("label", _label(model)),
        ("weights", f"{weights:,} numbers, float32"),
        ("vocabulary", f"{len(model.ids):,} words; all others count as one unknown word"),
        ("words", f"rule `{model.words}`: {_RULES[model.words]}"),
        ("stopwords", f"{len(model.stopwords):,} words are left out"),
        ("length of a text", "all of it" if model.row_length is None else f"{length}; what follows is not read"),
        ("data", f"dataset `{model.about.get('dataset', 'unknown')}`"),
        ("epochs", f"{model.about.get('epoch', 'unknown')}"),
        ("written by", f"Shoal {config['shoal']}; digest `{config['digest']}`"),
    ]
    named = f": {', '.join(classes)}" if len(classes) <= _CLASSES_NAMED else f" in {len(classes):,} classes"
    parts = [
        f"# A classifier of texts{named}\n\n{_table(('', ''), facts)}",
        _measures(model.about.get("test") or {}),
        _USE,
        _ONNX.format(
            file=ONNX,
            vocabulary=VOCABULARY,
            length=length,
            classes=len(classes),
            label=f"The label is {_label(model)}.",
        )
        if ONNX in files
        else "",
        _limits(model),
    ]
    return printable_lines("\n".join(filter(None, parts)))


def _measures(tested: Mapping[str, Any]) -> str:
    """The measures on the test rows; the accuracy says little without the share of the most frequent class."""
    numbers = {name: value for name, value in tested.items() if type(value) in (int, float) and name not in _SETTINGS}
    rows = []
    for name, value in numbers.items():
        beside = f" (always the most frequent class: {numbers[_MAJORITY]:.4f})" if _MAJORITY in numbers else ""
        if name != _MAJORITY:
            rows.append((name.replace("_", " "), f"{value:.4f}{beside if name == _ACCURACY else ''}"))
    if not rows:
        return "## Measures\n\nThe model has no measures on test rows.\n"
    return (
        "## Measures\n\nOn the test rows of the dataset, which the training did not see, evaluated once at its end:\n\n"
        + _table(("measure", "value"), rows)
    )


def _limits(model: TrainedModel) -> str:
    probability = (
        "The probability is right in order alone: the loss is the squared error of the rating."
        if model.loss.kind == "mse"
        else "The probabilities were not calibrated: of texts with probability 0.9 more or fewer than 9 in 10 may be "
        "of that class."
        if model.loss.temperature == 1
        else "The probabilities were calibrated on texts like those of the dataset. Of other texts with probability "
        "0.9 more or fewer than 9 in 10 may be of that class."
    )
    limits = (
        "The measures are of texts like those of the dataset. Nothing was measured on texts of another kind, another "
        "time or another language.",
        "The model learnt from ratings or labels as people gave them, with their errors, and repeats whatever bias "
        "the texts have. Do not let it alone decide anything about a person.",
        probability,
        "A text without a word that the model knows gets no class.",
    )
    return "## Limits\n\n" + "".join(f"- {limit}\n" for limit in limits)


def _label(model: TrainedModel) -> str:
    if model.classes:
        return "that of the most probable class"
    return f"1 where the probability of `positive` is above the threshold {model.loss.threshold!r}, else 0"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
