"""Predictions of topologies for a person and for a program (`shoal plan --rows`)."""

from collections.abc import Iterator, Sequence
from typing import Any

from bootstrap.cli.output import table
from experiments.forecast.choosing import pareto_front
from experiments.forecast.cluster import Prediction
from experiments.forecast.estimate import Estimate
from experiments.forecast.rates import Rates
from experiments.forecast.training import TrainingTime


def lines(found: Prediction) -> Iterator[str]:
    """The stages of a prediction, line by line."""
    rows = [(stage.name, _minutes(stage.seconds), _dollars(stage.dollars), stage.basis) for stage in found.stages]
    if found.by_use:
        rows.append(("the share, by use", "", f"{found.by_use:.2f}", "the price list"))
    rows.append(("all", _minutes(found.seconds), _dollars(found.dollars), ""))
    yield table(rows, ("stage", "minutes", "dollars", "by"), right=(1, 2), ruled=True)
    yield ""
    yield "Each with the range in which it is expected. What is not measured may be off by more: a run shows it."
    if found.unknown:
        yield f"The dollars are without {', '.join(found.unknown)}, whose prices are not known."


def choice_lines(found: Sequence[Prediction], of: int) -> Iterator[str]:
    """What fits, the cheapest first."""
    front = pareto_front(found)
    yield table(
        [
            (
                each.topology.name,
                _dollars(each.dollars) + (" or more" if each.unknown else ""),
                _hours(each.seconds),
                "*" if any(each is best for best in front) else "",
                each.topology.description,
            )
            for each in found
        ],
        ("topology", "dollars", "hours", "best", "what it is"),
        right=(1, 2),
        ruled=True,
    )
    yield ""
    yield f"{len(found)} of {of} topologies fit. *: no other is as cheap and as fast."
    yield "`shoal plan NAME` with the same options tells what each follows from, and what of it is not measured."


def content(found: Prediction) -> dict[str, Any]:
    """A prediction for a program."""
    return {
        "topology": found.topology.name,
        "seconds": found.seconds._asdict(),
        "dollars": found.dollars._asdict(),
        "by_use": found.by_use,
        "unknown": found.unknown,
        "stages": [
            {
                "name": stage.name,
                "seconds": stage.seconds._asdict(),
                "dollars": stage.dollars._asdict(),
                "basis": stage.basis,
            }
            for stage in found.stages
        ],
    }


def lines_here(found: Sequence[TrainingTime], rates: Rates) -> Iterator[str]:
    """What a training takes on this machine, line by line; `found`: at least, in the middle, and at most."""
    middle = found[1]
    parts = {
        "begin, measure rates, save": middle.around,
        "read the dataset": middle.loading,
        "compute": middle.computing,
        "add up, and step": middle.others,
        "evaluate": middle.evaluation,
        "checkpoints": middle.checkpoints,
    }
    yield table(
        [(name, f"{seconds:,.1f}") for name, seconds in parts.items()] + [("all", _range(_all(found, rates), ",.1f"))],
        ("part", "seconds"),
        right=(1,),
        ruled=True,
    )
    yield ""
    yield f"By {rates.source}."


def content_here(found: Sequence[TrainingTime], rates: Rates) -> dict[str, Any]:
    """The same for a program."""
    return {**vars(found[1]), "all": _all(found, rates)._asdict(), "source": rates.source}


def _all(found: Sequence[TrainingTime], rates: Rates) -> Estimate:
    """Seconds of all parts, from the least of the least work to the most of the most."""
    least, middle, most = (Estimate.about(each.all, rates.off) for each in found)
    return Estimate(least.low, middle.middle, most.high)


def _minutes(seconds: Estimate) -> str:
    return _range(seconds.times(1 / 60), ",.1f")


def _hours(seconds: Estimate) -> str:
    return _range(seconds.times(1 / 3600), ",.1f")


def _dollars(amount: Estimate) -> str:
    return _range(amount, ",.2f")


def _range(amount: Estimate, form: str) -> str:
    if amount.high == 0:
        return ""
    middle = f"{amount.middle:{form}}"
    return middle if amount.low == amount.high else f"{middle} ({amount.low:{form}} to {amount.high:{form}})"
