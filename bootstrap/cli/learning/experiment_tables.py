"""What `shoal experiment run` prints: the runs before they are made, and what they found."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bootstrap.cli.output import Part, Result, Table, table
from common.display import plural

if TYPE_CHECKING:
    from bootstrap.experiments.running import RunningPlan
    from experiments.plans.parts import PlannedRun
    from experiments.plans.prices import RunPrice
    from experiments.results import ArmResult, ExperimentResult


def _estimate(name: str, run: Mapping[str, Any]) -> str:
    from experiments.estimate import Estimate

    found = Estimate(**run[name]) if run[name] else None
    return "-" if found is None else found.time() if name == "seconds" else found.dollars()


_RUNS = Table(
    "runs",
    {
        "arm": "{arm}",
        "repeat": "{repeat}",
        "time": lambda run: _estimate("seconds", run),
        "cost": lambda run: _estimate("dollars", run),
        "by": "{basis}",
    },
)


def planned(plan: "RunningPlan", prices: Sequence[tuple["PlannedRun", "RunPrice"]]) -> Result:
    """The runs that are to be made, with what they would take and cost."""
    from experiments.plans.prices import total_dollars

    dollars, done = total_dollars([price for _, price in prices]), len(plan.runs) - len(prices)
    content = {
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
            }
            for run, price in prices
        ],
        "dollars": asdict(dollars),
        "finished": done,
        "left_out": {arm.name: why for arm, why in plan.left_out},
    }
    unknown = sum(price.dollars is None for _, price in prices)
    and_more = f", and {plural(unknown, 'run')} whose price cannot be told" if unknown else ""
    told = [
        f"All: {dollars.dollars()}{and_more}. Runs in {plan.output}.",
        *([f"{plural(done, 'run')} of {len(plan.runs)} finished before."] if done else []),
        *(f"Left out: '{arm.name}', because {why}." for arm, why in plan.left_out),
    ]
    return Result(content, [f"{plan.file.name}: {plan.file.experiment.about}", _RUNS, "\n".join(told)])


def found(result: "ExperimentResult") -> Result:
    """What an experiment found, an arm a line, as its report has it."""
    from experiments.records.comparing import warnings
    from experiments.report.rows import about
    from experiments.report.sections import EXPERIMENT

    warned = [
        *warnings([run for arm in result.arms for run in arm.runs]),
        *(f"left out: {each}" for each in result.problems),
    ]
    of = result.kept.experiment
    content = {
        "experiment": result.kept.name,
        "about": of.about,
        "kind": of.kind,
        "output": str(result.folder),
        "baseline": list(of.baseline),
        "arms": [_arm(arm) for arm in result.arms],
        "warnings": warned,
    }
    parts: list[Part] = [f"{result.kept.name}: {about(result)}"]
    if not any(arm.finished for arm in result.arms):
        return Result(content, [*parts, "No run has finished."])
    for spec in EXPERIMENT:
        if made := spec.made(result):
            right = [place for place, is_number in enumerate(made.numbers()) if is_number]
            parts.append(table(made.cells(), [column.head for column in made.columns], right=right, ruled=True))
    advice = f"A report of all runs: shoal report {shlex.quote(str(result.folder))}"
    return Result(content, [*parts, "\n".join([*warned, advice])])


def _arm(arm: "ArmResult") -> dict[str, Any]:
    spreads = {"seconds": arm.seconds, "rate": arm.rate}
    left_out = {"runs", "problems", "is_mixed"}
    return {
        **{name: value for name, value in vars(arm).items() if name not in left_out},
        **{name: spread and spread._asdict() for name, spread in spreads.items()},
        "folder": str(arm.folder),
    }
