"""Model card: README.md in a model's folder, which describes the model, its quality and its limits."""

from collections.abc import Mapping
from typing import Any

from common.display import printable_lines
from trainer.classification.trained_model import TrainedModel
from trainer.output.run_files import CONFIG, ONNX, PROGRAM, REQUIREMENTS, VOCABULARY

_CLASSES_NAMED = 8
"""Largest number of classes that the title names. With more classes, the title states only their number."""
_NO_MEASURES = ("temperature", "threshold")

_CARD = """\
# Text classifier{named}

| | |
|---|---|
| model | `{name}`: {settings} |
| classes | {classes} |
| loss | {loss} |
{strength}| temperature | {temperature:.4g}; the logits are divided by it before they are converted to probabilities |
| label | {label} |
| words | rule `{rule}` (docs/reference/dataset.md); a vocabulary of {words:,} words, without {stopwords:,} stopwords |
| length of a text | {length} |
| data | dataset `{data}` |
| written by | Shoal {shoal}; digest `{digest}` |

Measures on the test rows of the dataset, on which the model was not trained:

| measure | value |
|---|---|
{measures}

`shoal predict --model FOLDER reviews.csv` and `shoal.load_model("FOLDER")` use the model.
{onnx}
The model was not measured on texts of a different kind, time or language. {calibration} Do not let the model alone
decide anything about a person.
"""

_STRENGTH = """\
| strength | {:.4g}; the outputs' distance from the class frequencies is multiplied by it |
"""

_ONNX_SECTION = f"""
`{PROGRAM}` labels texts without Shoal and PyTorch: `pip install -r {REQUIREMENTS}`, `python {PROGRAM} < texts.txt`.

`{ONNX}` is the model for other programs. It has two inputs. `tokens`, int32 (rows, width), contains the ids
of each row's words, padded with 0 at the end. `lengths`, int64 (rows,), contains the number of words in each row, at
least 1. The id of a word is the number of its line in `{VOCABULARY}`, counted from 2; the id of any other word is 1.
Leave out the stopwords that `{CONFIG}` lists. A row is {{length}} of a text. The output `probabilities`, float32
(rows, {{classes}}), contains the calibrated probability of each class. The label is {{label}}.
"""


def model_card(model: TrainedModel, config: Mapping[str, Any]) -> str:
    classes = model.class_names
    label = "the most probable class"
    if not model.classes:
        label = f"1 if the probability of `positive` is above the threshold {model.loss.threshold!r}, otherwise 0"
    strength = round(float(model.classifier.strength), 2) if model.classifier.fits_strength else None
    length = "all words" if model.row_length is None else f"the first {model.row_length:,} words that are not left out"
    calibration = "Only the order of the probabilities has a meaning, because the loss was the rating's squared error."
    if model.loss.kind != "mse":
        is_calibrated = model.loss.temperature != 1 or strength not in (None, 1)
        how = "were calibrated on texts like the dataset's" if is_calibrated else "were not calibrated"
        calibration = f"The probabilities {how}."
    card = _CARD.format(
        named=f": {', '.join(classes)}" if len(classes) <= _CLASSES_NAMED else f" in {len(classes):,} classes",
        name=model.name,
        settings=", ".join(f"{name} {value}" for name, value in model.settings.items()),
        classes=", ".join(f"{label} {name}" for label, name in enumerate(classes)),
        loss=model.loss.kind,
        strength="" if strength is None else _STRENGTH.format(strength),
        temperature=model.loss.temperature,
        label=label,
        words=len(model.ids),
        stopwords=len(model.stopwords),
        rule=model.words,
        length=length,
        data=model.about.get("dataset", "unknown"),
        shoal=config["shoal"],
        digest=config["digest"],
        measures="\n".join(_measures(model.about.get("test") or {})),
        onnx=_ONNX_SECTION.format(length=length, classes=len(classes), label=label) if ONNX in config["files"] else "",
        calibration=calibration,
    )
    return printable_lines(card)


def _measures(tested: Mapping[str, Any]) -> list[str]:
    """Return the rows of the table of measures. The accuracy is shown with the share of the most frequent class."""
    numbers = {name: value for name, value in tested.items() if type(value) in (int, float)}
    majority = numbers.pop("majority", None)
    beside = {} if majority is None else {"accuracy": f" (always the most frequent class: {majority:.4f})"}
    match tested.get("accuracy_interval"):
        case [float(low), float(high)]:
            beside["accuracy"] = f" (95% interval: {low:.4f} to {high:.4f}){beside.get('accuracy', '')}"
    return [
        f"| {name.replace('_', ' ')} | {value:.4f}{beside.get(name, '')} |"
        for name, value in numbers.items()
        if name not in _NO_MEASURES
    ]
