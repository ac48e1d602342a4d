"""`shoal plan`: shows a topology's price, the problems that would prevent its deployment, and the guard's limits."""

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from common.display import join_lines
from common.errors import ExperimentError, UsageError
from infra.topology_error import TopologyError
from shoal.aws import cdk
from shoal.cli.command import Converted, command, option
from shoal.cli.output import Part, Result, Rows, Table, table
from shoal.cli.target import check_name
from trainer.registry import CLASSIFIERS

if TYPE_CHECKING:
    from experiments.choices import Prediction
    from experiments.forecast import Work
    from shoal.deployments.plan import DeploymentPlan

_WORK = "Work to predict"
_REGION = "us-east-1"
"""Region of the single EC2 machines that `--all` compares with topologies."""
_MOST_BYTES = 1e18
_TOPOLOGIES: Rows = {
    "topology": "{topology}",
    "$ per hour": "{hourly:.2f}",
    "GPUs": "{gpus}",
    "retired": lambda each: "yes" if each["retired"] else "",
    "description": "{description}",
}


def _read_size(text: str) -> float:
    """Return the number of bytes of a size such as 92.45GB (decimal units). Raises argparse.ArgumentTypeError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(|k|M|G|T)B?", text.strip(), re.IGNORECASE)
    size = float(match[1]) * 1000.0 ** " kmgt".index(match[2].lower() or " ") if match else 0.0
    if not 0 < size <= _MOST_BYTES:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a size; write at most 1,000,000TB, such as 500MB or 92.45GB"
        )
    return size


@command(
    help="Show the hourly price of topologies, check that AWS can start them, and show the guard's limits. The command "
    "creates nothing. Without a topology, it lists the topologies in topologies/. With --rows, it predicts the "
    "time and cost of preprocessing and training, stage by stage. With --all, it compares single machines and "
    "all topologies.",
    epilog="""\
\b
Examples:
  shoal plan starter --hours 3
  shoal plan mixed-g5-g4dn --rows 21300000 --raw-bytes 92.45GB --epochs 10
  shoal plan --all --rows 21300000 --raw-bytes 92.45GB --model lstm

The exit status is 1 if `shoal deploy` would refuse a topology.
""",
)
@click.argument(
    "topologies",
    nargs=-1,
    metavar="[NAME_OR_FILE]...",
    help="names of topologies in topologies/, or your own YAML files",
)
@option(
    "--hours",
    type=click.FloatRange(0, min_open=True),
    metavar="H",
    help="number of hours to price (default: max_hours of the topology's guard)",
)
@option("--offline", is_flag=True, help="check only the topology, without requests to AWS")
@option("--deployment", metavar="NAME", help="name of the deployment (default: the topology's name)")
@option(
    "--rows",
    group=_WORK,
    type=click.IntRange(min=1),
    metavar="N",
    help="number of rows in the dataset, that is, of distinct texts",
)
@option(
    "--raw-bytes",
    group=_WORK,
    type=Converted(_read_size),
    metavar="SIZE",
    help="uncompressed size of the raw reviews, such as 92.45GB (default: no preprocessing, because the dataset "
    "already exists)",
)
@option(
    "--epochs",
    group=_WORK,
    type=click.IntRange(min=1),
    metavar="E",
    help="passes over the training rows (default: the model's)",
)
@option(
    "--model",
    group=_WORK,
    type=click.Choice(CLASSIFIERS),
    help="model to train (default: linear)",
)
@option("--all", "every", group=_WORK, is_flag=True, help="compare single machines and all topologies")
def run(
    *,
    topologies: tuple[str, ...],
    hours: float | None,
    offline: bool,
    deployment: str | None,
    **asked: Any,
) -> Result:
    _require_topologies(topologies, hours=hours, deployment=deployment)
    work = _read_work(topologies, **asked)
    if not topologies:
        return _list_choices(work) if work else _list_topologies()
    from infra import topology
    from shoal.deployments import plan

    if not offline:
        from shoal.deployments import preflight  # this import loads boto3

    plans: list[dict[str, Any]] = []
    parts: list[Part] = []
    failures = []
    for name in topologies:
        chosen = topology.load(name, cdk.TOPOLOGIES)
        planned = plan.make_plan(
            chosen,
            deployment=check_name(deployment or chosen.name),
            hours=hours,
            session=None if offline else preflight.session(chosen.region),
            endpoint=os.environ.get("AWS_ENDPOINT_URL"),
        )
        plans.append(plan_content(planned, deployment=deployment or chosen.name))
        parts += plan_parts(planned, plans[-1])
        if work:
            from experiments.choices import predict

            plans[-1]["prediction"] = None
            try:
                prediction = predict(chosen, work)
            except ExperimentError as error:
                failures.append(str(error))
                continue
            plans[-1]["prediction"] = prediction.content()
            parts += _prediction(prediction)
    status = int(bool(failures) or any(each["refused"] for each in plans))
    return Result({"plans": plans}, parts, status, failures=failures)


def _read_work(
    topologies: Sequence[str],
    *,
    rows: int | None,
    raw_bytes: float | None,
    epochs: int | None,
    model: str | None,
    every: bool,
) -> "Work | None":
    if rows is None and (every or raw_bytes is not None or epochs is not None or model is not None):
        raise UsageError("--all, --raw-bytes, --epochs and --model require --rows, the number of distinct texts")
    if every if topologies else rows is not None and not every:
        raise UsageError("--rows requires either topologies, or --all and no topology")
    if rows is None:
        return None
    from experiments.forecast import planned_work

    return planned_work(model or "linear", rows, epochs, raw_bytes)


def _prediction(prediction: "Prediction") -> list[Part]:
    rows = [
        (each.name, each.seconds.time() if each.seconds.high else "", each.dollars.dollars(), each.basis)
        for each in prediction.stages
    ]
    if prediction.by_use:
        rows.append(("shared file system", "", f"${prediction.by_use:,.2f}", "the price list"))
    rows.append(("total", prediction.seconds.time(), prediction.dollars.dollars(), ""))
    without = (
        f"\nThe cost does not include {', '.join(prediction.unknown)}, because their prices are unknown."
        if prediction.unknown
        else ""
    )
    return [
        table(rows, ("stage", "time", "cost", "based on"), right=(1, 2), ruled=True),
        f"Ranges show the expected spread, for the model {prediction.model}.{without}",
    ]


def _list_choices(work: "Work") -> Result:
    from experiments.choices import machines, predict
    from infra import topology
    from shoal.deployments.plan import retired

    alone, clusters = machines(work, _REGION), []
    for name in topology.names_in(cdk.TOPOLOGIES):
        chosen = topology.load(name, cdk.TOPOLOGIES)
        if chosen.training and not retired(chosen):
            with suppress(ExperimentError):  # the topology lacks nodes for the work
                clusters.append(predict(chosen, work))
    clusters.sort(key=lambda each: (each.dollars.middle, each.seconds.middle))
    priced = [each for each in (*alone, *clusters) if each.dollars.high]
    marks = {
        "cheapest": min(priced, key=lambda each: each.dollars.middle),
        "fastest": min(priced, key=lambda each: each.seconds.middle),
    }

    def listed(predictions: "Sequence[Prediction]") -> list[dict[str, Any]]:
        return [{**each.content(), **{mark: each is best for mark, best in marks.items()}} for each in predictions]

    rows = [
        (
            each.name,
            each.model,
            each.dollars.dollars() + (" or more" if each.unknown else ""),
            each.seconds.time(),
            ", ".join(mark for mark, best in marks.items() if each is best),
        )
        for each in (*alone, *clusters)
    ]
    text = [
        table(rows, ("machine or topology", "model", "cost", "time", ""), right=(2, 3), ruled=True),
        f"Single machines come first: this machine (not for an LSTM), then EC2 instances in {_REGION}. These are the "
        f"cheapest instance, and each more expensive instance that is a quarter faster than the one before.\n"
        "No run on AWS has confirmed these predictions; `shoal plan NAME` with the same options shows their basis.",
    ]
    return Result({"machines": listed(alone), "topologies": listed(clusters)}, text)


def _require_topologies(topologies: Sequence[str], *, hours: float | None, deployment: str | None) -> None:
    if hours is not None and not topologies:
        raise UsageError("--hours requires a topology")
    if deployment and len(topologies) != 1:
        raise UsageError("--deployment requires exactly one topology")


def plan_content(planned: "DeploymentPlan", *, deployment: str) -> dict[str, Any]:
    """Return a plan as JSON content."""
    from shoal.deployments.plan import guard_sentences

    return {
        "topology": planned.topology.name,
        "deployment": deployment,
        "region": planned.topology.region,
        "bill": [{**asdict(row), "hourly": row.hourly} for row in planned.bill],
        "unknown": planned.unknown,
        "by_use": [asdict(use) for use in planned.by_use],
        "hourly": planned.hourly,
        "resting": planned.resting,
        "max_dollars": planned.topology.max_dollars,
        "hours": planned.hours,
        "price": planned.hours * planned.hourly,
        "guard": guard_sentences(planned.topology, deployment=deployment),
        "asked": planned.account,
        "findings": [asdict(finding) for finding in planned.findings],
        "refused": bool(planned.refused),
    }


def plan_parts(planned: "DeploymentPlan", content: Mapping[str, Any]) -> list[Part]:
    """Return a plan as text."""
    total = {
        "item": f"everything running{', at least' if planned.unknown else ''}",
        "hourly": planned.hourly,
    }
    findings = [
        f"  {'error on AWS' if each.level == 'error' and each not in planned.refused else each.level}: {each.sentence}"
        for each in planned.findings
    ]
    return [
        f"{planned.topology.name}: {planned.topology.description} ({planned.topology.region})",
        Table([*content["bill"], total], _BILL),
        "\n".join(_prices(planned)),
        "\n  ".join(["The guard:", *content["guard"]]),
        join_lines([f"Checked: the topology; AWS: {planned.account}.", *findings]),
    ]


def _prices(planned: "DeploymentPlan") -> Iterator[str]:
    from infra.cost import hourly_of_run

    chosen, least = planned.topology, "at least " if planned.unknown else ""
    yield f"{planned.hours:g} h with everything running: {least}${planned.hours * planned.hourly:.2f}."
    if planned.resting < planned.hourly:
        idle = "with node groups at zero" if chosen.training else "before a training"
        yield f"After the deployment, {idle}: {least}${planned.resting:.2f} per hour."
    if chosen.max_dollars and not least:
        hours = chosen.max_dollars / hourly_of_run(chosen)
        yield (
            f"A run stops with a checkpoint before its nodes cost ${chosen.max_dollars:.2f} (max_dollars), "
            f"which is after {hours:.1f} h of training on all nodes."
        )
    by_use = "; ".join(
        f"{use.item}: {'unknown' if use.price is None else f'${use.price:g}'} per {use.unit}" for use in planned.by_use
    )
    yield f"Charged by use: {by_use}; the guard: a few cents per day."


def _each(row: Mapping[str, Any]) -> str:
    if "quantity" not in row:
        return ""
    if row["unit_price"] is None:
        return "unknown"
    return ("" if row["cheapest"] is None else f"{row['cheapest']:.4f} to ") + f"{row['unit_price']:.4f}"


_BILL: Rows = {
    "part": "{part}",
    "what": lambda row: row["item"] + (" (spot: at most)" if row.get("at_most") else ""),
    "number": "{quantity}",
    "$ per hour each": _each,
    "$ per hour": lambda row: "unknown" if row.get("unit_price", 0) is None else f"{row['hourly']:.4f}",
}


def _list_topologies() -> Result:
    from infra import topology
    from shoal.deployments import plan

    listing: list[dict[str, Any]] = []
    for name in topology.names_in(cdk.TOPOLOGIES):
        try:
            planned = plan.make_plan(topology.load(name, cdk.TOPOLOGIES), deployment=name)
        except TopologyError as error:
            listing.append({"topology": name, "error": str(error)})
            continue
        chosen = {"gpus": plan.gpus(planned.topology), "retired": plan.retired(planned.topology)}
        listing.append(
            {
                "topology": name,
                "hourly": planned.hourly,
                **chosen,
                "description": planned.topology.description,
            }
        )
    faults = [each["error"] for each in listing if "error" in each]
    listed = Table([each for each in listing if "error" not in each], _TOPOLOGIES)
    return Result({"topologies": listing}, [listed, join_lines(faults)], int(bool(faults)))
