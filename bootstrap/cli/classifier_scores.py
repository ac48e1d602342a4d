"""What `shoal evaluate` does with a classifier: its predictions for files beside their ratings or labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bootstrap.cli.confusion import confusion_rows
from bootstrap.cli.output import Result, percent, print_warning, table
from bootstrap.cli.predict import find_files, require_answers, require_no_option_of_two_classes
from bootstrap.prediction.model import open_model
from bootstrap.progress import Bars
from common.display import plural
from common.errors import DataError
from corpus.text import FIRST_WORD

_LEAST_SHARE = 0.01
"""Short texts are in many files; a smaller share changes no figure."""


def evaluate_classifier(model: str, files: Sequence[str], options: dict[str, Any]) -> Result:
    """How good a classifier is on files. Raises DataError for files without ratings or labels."""
    from bootstrap.prediction.scores import ScoredAnswers
    from bootstrap.prediction.texts import label_text_files
    from corpus.reading.tally import Tally
    from trainer.classification.labelling import Labeller
    from trainer.classification.learnt_rows import learnt_share, text_hashes

    loaded = open_model(model)
    if loaded.classes:
        require_no_option_of_two_classes(options)
    found = find_files(loaded, files, options)
    if found.not_compared is not None:
        raise DataError(f"there is nothing to compare the predictions with: {found.not_compared}")
    tally, answers, done = Tally(), ScoredAnswers(classes=loaded.classes), 0
    with Bars() as bars:
        bars.stage("evaluate", found.understanding.plain_bytes)
        encode, hashes = Labeller(loaded).encoded, []
        for batch, _ in label_text_files(loaded, found, tally, answers, threshold=loaded.loss.threshold):
            hashes.append(text_hashes(*encode(batch.texts), words=len(loaded.ids) + FIRST_WORD))
            done += batch.raw_bytes
            bars.at(done)
    require_answers(tally, answers, found)
    if not answers.said:
        raise DataError(f"no text of the input has a word that {model} knows; give texts of its language")
    scores = answers.scores(found.settings, loaded.class_names)
    counts = {
        "texts": answers.said.total(),
        "unknown": answers.unknown,
        "other_labels": answers.others,
        "malformed": tally.counts["malformed"],
    }
    learnt = learnt_share(loaded.about, np.concatenate(hashes))
    if learnt is not None and learnt >= _LEAST_SHARE:
        print_warning(
            f"the model learnt from about {percent(learnt)} of these texts, so that it looks better here than on new "
            "ones; evaluate it on others"
        )
    return Result({"model": model, **counts, "learnt_share": learnt, **scores}, _parts(counts, scores))


def _parts(counts: dict[str, int], scores: dict[str, Any]) -> list[str]:
    left_out = ", ".join(
        f"{counts[name]:,} {what}"
        for name, what in (
            ("unknown", "without a word that the model knows"),
            ("other_labels", "without a known rating or label"),
            ("malformed", "malformed"),
        )
        if counts[name]
    )
    measured = [
        ("scored", plural(counts["texts"], "text") + (f"; left out: {left_out}" if left_out else "")),
        ("accuracy", f"{percent(scores['accuracy'])} (always the majority: {percent(scores['majority'])})"),
        ("balanced accuracy", percent(scores["balanced_accuracy"])),
        ("macro-F1", f"{scores['macro_f1']:.3f}"),
        ("log loss", f"{scores['log_loss']:.3f}"),
        ("calibration error", percent(scores["calibration_error"])),
        *confusion_rows(scores["confusion"]),
    ]
    classes = [
        (name, _share(each["precision"]), _share(each["recall"]), f"{each['f1']:.3f}", f"{each['texts']:,}")
        for name, each in scores["classes"].items()
    ]
    bins = [
        (f"from {each['from']:.1f}", percent(each["probability"]), percent(each["right"]), f"{each['texts']:,}")
        for each in scores["calibration"]
    ]
    return [
        table(measured),
        table(classes, ("class", "precision", "recall", "F1", "texts"), right=(1, 2, 3, 4), ruled=True),
        table(bins, ("probability", "mean", "right", "texts"), right=(1, 2, 3), ruled=True),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)
