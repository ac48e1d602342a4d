"""Tables of experiments for a person, and the same for a program: runs before they are made, and what they found."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bootstrap.cli.figures import dollars
from bootstrap.cli.output import percent, table
from common.display import plural
from experiments.plans.prices import total_dollars
from experiments.records.comparing import warnings
from trainer.options.embedding_options import PIP_COSINE, SIMILARITY

if TYPE_CHECKING:
    from bootstrap.experiments.running import RunningPlan
    from experiments.plans.planned import PlannedRun
    from experiments.plans.prices import RunPrice
    from experiments.results.arm_results import ArmResult, ExperimentResult, Spread

_SHOWN = "accuracy"
"""The measure that the table has of classifiers; programs get all."""


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
    """What an experiment found, an arm a line; columns in which nothing is known are left out."""
    arms = [arm for arm in found.arms if arm.finished]
    trains = found.kind != "preprocessing"
    columns: list[tuple[str, Sequence[str]]] = [
        ("ranks" if trains else "cores", [str(arm.ranks or "") for arm in arms]),
        ("seconds (least to most)", [_seconds(arm.seconds) for arm in arms]),
        *(
            _word_columns(arms)
            if found.kind == "words"
            else [("rows/s" if trains else "MB/s", [_rate(arm.rate, 1 if trains else 1e6) for arm in arms])]
        ),
        ("speed-up", [_number(arm.speed_up) for arm in arms]),
        ("efficiency", [_percent(arm.efficiency) for arm in arms]),
        ("of own rates", [_percent(arm.of_bound) for arm in arms]),
        (f"seconds to {found.target}", [_seconds(arm.to_target) for arm in arms]),
        ("speed-up to it", [_number(arm.target_speed_up) for arm in arms]),
        ("efficiency to it", [_percent(arm.target_efficiency) for arm in arms]),
        (_SHOWN, [_percent(arm.measures.get(_SHOWN)) for arm in arms]),
        ("cost a run", ["" if arm.dollars is None else dollars(arm.dollars) for arm in arms]),
    ]
    shown = [(head, cells) for head, cells in columns if any(cells)]
    yield f"{found.name}: {found.about}"
    yield ""
    if not arms:
        yield "No run has finished."
        return
    names, remarks = [arm.name for arm in arms], [arm.remark for arm in arms]
    cells = zip(names, *(cells for _, cells in shown), remarks, strict=True)
    yield table(list(cells), ["arm", *(head for head, _ in shown), ""], right=range(1, len(shown) + 1), ruled=True)
    yield ""
    yield from _warnings(found)
    yield f"A report of all runs: shoal report {shlex.quote(str(found.folder))}"


def _word_columns(arms: Sequence["ArmResult"]) -> list[tuple[str, Sequence[str]]]:
    """What arms have that learn word embeddings."""
    words = [arm.words for arm in arms]
    return [
        ("an epoch", ["" if each is None else f"{each.seconds_an_epoch:,.1f}" for each in words]),
        ("words/s", ["" if each is None else f"{each.words_a_second:,.0f}" for each in words]),
        ("best PIP loss", ["" if each is None else _number(each.pip_loss) for each in words]),
        ("its mean square", ["" if each is None else _digits(each.pip_mean_square) for each in words]),
        ("PIP cosine", [_digits(arm.measures.get(PIP_COSINE)) for arm in arms]),
        (SIMILARITY, [_digits(arm.measures.get(SIMILARITY)) for arm in arms]),
        ("loss of a pair", ["" if each is None else _digits(each.loss) for each in words]),
        ("kB sent a step", ["" if arm.bytes_a_step is None else f"{arm.bytes_a_step / 1e3:,.1f}" for arm in arms]),
    ]


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
    plain = (
        *("name", "place", "ranks", "sleeps", "finished", "speed_up", "efficiency", "target_speed_up"),
        *("target_efficiency", "of_bound", "bytes_a_step", "dollars", "remark"),
    )
    return {
        **{name: getattr(arm, name) for name in plain},
        **{name: spread._asdict() if spread else None for name, spread in spreads.items()},
        "folder": str(arm.folder),
        "settings": dict(arm.settings),
        "measures": dict(arm.measures),
        **({"words": vars(arm.words)} if arm.words else {}),
    }


def _rate(spread: "Spread | None", unit: float) -> str:
    return "" if spread is None else f"{spread.median / unit:,.{1 if unit > 1 else 0}f}"


def _seconds(spread: "Spread | None") -> str:
    if spread is None:
        return ""
    middle = f"{spread.median:,.1f}"
    return middle if spread.least == spread.most else f"{middle} ({spread.least:,.1f} to {spread.most:,.1f})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:#.4g}"


def _percent(value: float | None) -> str:
    return "" if value is None else percent(value)
