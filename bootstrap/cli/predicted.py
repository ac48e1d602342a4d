"""Predictions of topologies for a person and for a program (`shoal plan --rows`)."""

from collections.abc import Iterator, Sequence
from typing import Any

from bootstrap.cli.output import table
from experiments.forecast.choosing import pareto_front
from experiments.forecast.cluster import Prediction
from experiments.forecast.estimate import Estimate
from experiments.forecast.machines import LSTM, MachinePlan, MachineSpeed, beats
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


def machine_lines(
    machines: Sequence[MachinePlan], clusters: Sequence[Prediction], here: MachineSpeed | None
) -> Iterator[str]:
    """One machine for all of the work, before any cluster; and what the best cluster gains beyond the error. `here` is
    how fast this machine was, None where it was not measured."""
    yield "One machine for all of it:"
    rows = [
        (each.name, each.model, _dollars(each.dollars) or "0", _hours(each.seconds), _middles(each))
        for each in machines
    ]
    yield table(rows, ("machine", "model", "dollars", "hours", "of that, in minutes"), right=(2, 3), ruled=True)
    yield ""
    yield (
        f"This machine does the work of {here.together:.1f} cores of the one that was measured; a core alone, of "
        f"{here.alone:.1f}."
        if here
        else "Each core of this machine counts as the one that was measured; with --measure half a minute tells."
    )
    lstms = [each for each in machines if each.model == LSTM]
    for cluster in pareto_front(clusters):
        beaten = [machine for machine in lstms if beats(cluster, machine)]
        unbeaten = [machine for machine in lstms if machine not in beaten]
        if lstms and not unbeaten:
            quickest = min(lstms, key=lambda each: each.seconds.middle)
            yield (
                f"{cluster.topology.name} is faster or cheaper than any of them beyond the error of these predictions: "
                f"{_gained(quickest, cluster)} than one {quickest.name}."
            )
            return
    if lstms and clusters:
        yield (
            "No cluster below is faster or cheaper than all of these beyond the error of the predictions: take one "
            "machine. There `shoal preprocess --local` and `shoal train --local` do the work."
        )
    yield (
        "Not measured on AWS: what a core, a GPU and the network do there is assumed. A topology like one-node "
        "(`preprocessing: {on: node}`) deploys a machine with a GPU; start one without a GPU yourself."
    )
    yield ""


def _middles(machine: MachinePlan) -> str:
    return ", ".join(f"{name} {seconds / 60:,.0f}" for name, seconds in machine.stages.items() if seconds)


def _gained(machine: MachinePlan, cluster: Prediction) -> str:
    hours = (machine.seconds.middle - cluster.seconds.middle) / 3600
    dollars = cluster.dollars.middle - machine.dollars.middle
    return (
        f"{abs(hours):,.1f} hours {'less' if hours > 0 else 'more'}, and ${abs(dollars):,.2f} "
        f"{'more' if dollars > 0 else 'less'},"
    )


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
