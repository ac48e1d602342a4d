"""The model card, README.md in a model's folder: what the model is, how good it is, how to use it, and its limits.

It is written from the other files alone, and is for people; nothing reads it.
"""

from collections.abc import Mapping
from typing import Any

from common.display import printable_lines
from trainer.classification.trained_model import TrainedModel
from trainer.output.run_files import ONNX, VOCABULARY

_CLASSES_NAMED = 8
"""More classes are counted in the title, and named below it."""
_NO_MEASURES = ("temperature", "threshold")

_RULES = {
    "letters": "HTML entities decoded once, lower case, runs of a-z and inner apostrophes; digits, other punctuation "
    "and other letters are not read",
    "tokens": "letters a-z in lower case; each of `'.,()!?` is a word of its own; `\"` is not read; `<br />`, `;`, `:` "
    "and white space separate words, of which all other characters are part",
}
"""What each rule of words reads."""

_CARD = """\
# A classifier of texts{named}

| | |
|---|---|
| model | `{name}`: {settings} |
| classes | {classes} |
| loss | {loss} |
| temperature | {temperature:.4g}, by which the logits are divided before they are probabilities |
| label | {label} |
| vocabulary | {words:,} words; all others count as one unknown word; {stopwords:,} stopwords are left out |
| words | rule `{rule}`: {reads} |
| length of a text | {length} |
| data | dataset `{data}` |
| written by | Shoal {shoal}; digest `{digest}` |

## Measures

On the test rows of the dataset, which the training did not see, evaluated once at its end:

| measure | value |
|---|---|
{measures}

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
{onnx}
## Limits

- The measures are of texts like those of the dataset. Nothing was measured on texts of another kind, another time or
  another language.
- The model learnt from ratings or labels as people gave them, with their errors, and repeats whatever bias the texts
  have. Do not let it alone decide anything about a person.
- {calibration}
- A text without a word that the model knows gets no class.
"""

_OF_ONNX = f"""
## {ONNX}

For programs without PyTorch. It has two inputs:

- `tokens`, int32 (rows, width): the ids of each row's words, padded with 0 at the end. The words are those of the
  rule above, without the stopwords of `config.json`: {{length}} of each text. The id of a word is its line in
  `{VOCABULARY}`, counted from 2; that of any other word is 1.
- `lengths`, int64 (rows,): the number of words in each row, at least 1.

Its output `probabilities`, float32 (rows, {{classes}}), has the calibrated probability of each class in the order
above. The label is {{label}}.
"""


def model_card(model: TrainedModel, config: Mapping[str, Any]) -> str:
    classes = model.class_names
    label = "that of the most probable class"
    if not model.classes:
        label = f"1 where the probability of `positive` is above the threshold {model.loss.threshold!r}, else 0"
    length = "all words" if model.row_length is None else f"the first {model.row_length:,} kept words"
    card = _CARD.format(
        named=f": {', '.join(classes)}" if len(classes) <= _CLASSES_NAMED else f" in {len(classes):,} classes",
        name=model.name,
        settings=", ".join(f"{name} {value}" for name, value in model.settings.items()),
        classes=", ".join(f"{label} {name}" for label, name in enumerate(classes)),
        loss=model.loss.kind,
        temperature=model.loss.temperature,
        label=label,
        words=len(model.ids),
        stopwords=len(model.stopwords),
        rule=model.words,
        reads=_RULES[model.words],
        length=length,
        data=model.about.get("dataset", "unknown"),
        shoal=config["shoal"],
        digest=config["digest"],
        measures="\n".join(_measures(model.about.get("test") or {})),
        onnx=_OF_ONNX.format(length=length, classes=len(classes), label=label) if ONNX in config["files"] else "",
        calibration=_calibration(model),
    )
    return printable_lines(card)


def _measures(tested: Mapping[str, Any]) -> list[str]:
    """The accuracy says little without the share of the most frequent class."""
    numbers = {name: value for name, value in tested.items() if type(value) in (int, float)}
    majority = numbers.pop("majority", None)
    beside = {} if majority is None else {"accuracy": f" (always the most frequent class: {majority:.4f})"}
    return [
        f"| {name.replace('_', ' ')} | {value:.4f}{beside.get(name, '')} |"
        for name, value in numbers.items()
        if name not in _NO_MEASURES
    ]


def _calibration(model: TrainedModel) -> str:
    if model.loss.kind == "mse":
        return "The probability is right in order alone: the loss is the squared error of the rating."
    how = "were not calibrated" if model.loss.temperature == 1 else "were calibrated on texts like those of the dataset"
    return (
        f"The probabilities {how}. Of other texts with probability 0.9 more or fewer than 9 in 10 may be of that class."
    )
