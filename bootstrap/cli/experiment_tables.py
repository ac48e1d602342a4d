"""Tables of experiments for a person, and the same for a program: runs before they are made, and what they found."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bootstrap.cli.output import table
from common.display import plural
from experiments.plans.prices import total_dollars
from experiments.records.comparing import warnings

if TYPE_CHECKING:
    from bootstrap.experiments.running import RunningPlan
    from experiments.plans.planned import PlannedRun
    from experiments.plans.prices import RunPrice
    from experiments.results.arm_results import ArmResult, ExperimentResult


def dry_lines(plan: "RunningPlan", prices: Sequence[tuple["PlannedRun", "RunPrice"]]) -> Iterator[str]:
    """The runs that are to be made, with what they would take and cost."""
    yield f"{plan.file.name}: {plan.file.experiment.about}"
    yield ""
    rows = [
        (
            run.arm.name,
            str(run.repeat),
            price.seconds.time() if price.seconds else "-",
            price.dollars.dollars() if price.dollars else "-",
            price.basis,
        )
        for run, price in prices
    ]
    if retired := {run.arm.name: price.retired for run, price in prices if price.retired}:
        yield "AWS starts none of these arms any more, which run on the embedded AWS alone; the others are of today:"
        yield from (f"  {name}: {', '.join(types)}" for name, types in retired.items())
        yield ""
    if rows:
        yield table(rows, ("arm", "repeat", "time", "cost", "by"), right=(1, 2, 3), ruled=True)
        yield ""
    costs, unknown = [price for _, price in prices], sum(price.dollars is None for _, price in prices)
    and_more = f", and {plural(unknown, 'run')} whose price cannot be told" if unknown else ""
    yield f"All: {total_dollars(costs).dollars()}{and_more}. Runs in {plan.output}."
    if done := len(plan.runs) - len(prices):
        yield f"{plural(done, 'run')} of {len(plan.runs)} finished before."
    for arm, why in plan.left_out:
        yield f"Left out: '{arm.name}', because {why}."


def dry_content(plan: "RunningPlan", prices: Sequence[tuple["PlannedRun", "RunPrice"]]) -> dict[str, Any]:
    """The same for a program."""
    return {
        "experiment": plan.file.name,
        "output": str(plan.output),
        "runs": [
            {
                "arm": run.arm.name,
                "repeat": run.repeat,
                "folder": str(run.folder),
                "seconds": price.seconds and asdict(price.seconds),
                "dollars": price.dollars and asdict(price.dollars),
                "basis": price.basis,
                "retired": list(price.retired),
            }
            for run, price in prices
        ],
        "dollars": asdict(total_dollars([price for _, price in prices])),
        "finished": len(plan.runs) - len(prices),
        "left_out": {arm.name: why for arm, why in plan.left_out},
    }


def lines(found: "ExperimentResult") -> Iterator[str]:
    """What an experiment found, an arm a line, as its report has it."""
    from experiments.report.rows import about
    from experiments.report.sections import EXPERIMENT

    yield f"{found.name}: {about(found)}"
    yield ""
    if not any(arm.finished for arm in found.arms):
        yield "No run has finished."
        return
    for spec in EXPERIMENT:
        if made := spec.made(found):
            right = [place for place, is_number in enumerate(made.numbers()) if is_number]
            yield table(made.cells(), [column.head for column in made.columns], right=right, ruled=True)
            yield ""
    yield from _warnings(found)
    yield f"A report of all runs: shoal report {shlex.quote(str(found.folder))}"


def content(found: "ExperimentResult") -> dict[str, Any]:
    """The same for a program."""
    return {
        "experiment": found.name,
        "about": found.about,
        "kind": found.kind,
        "output": str(found.folder),
        "target": found.target.model_dump(exclude_none=True) if found.target else None,
        "baseline": list(found.baseline),
        "arms": [_arm_content(arm) for arm in found.arms],
        "warnings": _warnings(found),
    }


def _warnings(found: "ExperimentResult") -> list[str]:
    """What keeps the runs from being compared, and runs that are left out."""
    return [
        *warnings([run for arm in found.arms for run in arm.runs]),
        *(f"left out: {each}" for each in found.problems),
    ]


def _arm_content(arm: "ArmResult") -> dict[str, Any]:
    spreads = {"seconds": arm.seconds, "rate": arm.rate, "to_target": arm.to_target}
    left_out = {"runs", "problems", "is_mixed"}
    return {
        **{name: value for name, value in vars(arm).items() if name not in left_out},
        **{name: spread and spread._asdict() for name, spread in spreads.items()},
        "folder": str(arm.folder),
    }
