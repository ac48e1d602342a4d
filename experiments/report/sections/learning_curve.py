"""Accuracy by labels, a line for each amount of text that a language model had learnt from before."""

from experiments.report.figures import Column, Figure, Plot, Value
from experiments.report.specs import lines, measured, number
from experiments.results.arm_results import ExperimentResult
from experiments.results.learning_curve import learning_curve, lines_of

_COLUMNS = (
    Column(key="line", head="pretrained on"),
    Column(key="labels", head="labels", form=",.0f"),
    Column(key="accuracy", head="accuracy", form=".2%"),
    Column(key="least", head="least", form=".2%"),
    Column(key="most", head="most", form=".2%"),
    Column(key="pretraining_seconds", head="pretraining, s", form=",.1f"),
    Column(key="seconds", head="training, s", form=",.1f"),
    Column(key="pretraining_dollars", head="pretraining, $", form=",.2f"),
    Column(key="dollars", head="a training, $", form=",.2f"),
)


def learning_curves(found: ExperimentResult) -> list[Figure]:
    """The figure, of an experiment with arms that start from language models."""
    points = learning_curve(found)
    if not points:
        return []
    rows: list[list[Value]] = [[getattr(point, column.key) for column in _COLUMNS] for point in points]
    names = list(lines_of(points))
    x = number("labels", "labels", log=True, axis={"values": sorted({point.labels for point in points})})
    spec = lines(x, measured("accuracy", "accuracy"), names, by="line")
    plot = Plot(
        title="Accuracy by labels",
        description="The accuracy on the test rows against the number of labelled rows that were learnt from; a line "
        "for each amount of text that the language model had learnt from before.",
        spec=spec,
    )
    text = (
        "Accuracies are means over the runs, with the least and the most; a pretraining is shared by all arms with it."
    )
    return [
        Figure(
            key="learning-curve", title="Accuracy by labels", columns=list(_COLUMNS), rows=rows, plots=[plot], text=text
        ).without_empty_columns()
    ]
