"""`shoal plan`: what a topology would cost, what would keep it from starting, what the guard will do."""

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bootstrap.aws import cdk
from bootstrap.cli.command import Converted, command, complete_topology, option
from bootstrap.cli.output import Result, table
from bootstrap.cli.target import check_name
from common.errors import ExperimentError, UsageError
from infra.topology_error import TopologyError

if TYPE_CHECKING:
    import boto3

    from bootstrap.lifecycle.plan import DeploymentPlan
    from experiments.forecast import Prediction, Rates, Work
    from infra.cost import Row

_WORK = "The work"
_REGION = "us-east-1"
"""Whose machines are compared with topologies."""
_MOST_BYTES = 1e18


def _read_size(text: str) -> float:
    """The bytes that a text such as 92.45GB names, in powers of 1000. Raises argparse.ArgumentTypeError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(|k|M|G|T)B?", text.strip(), re.IGNORECASE)
    size = float(found[1]) * 1000.0 ** " kmgt".index(found[2].lower() or " ") if found else 0.0
    if not 0 < size <= _MOST_BYTES:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a size up to 1,000,000TB, such as 500MB or 92.45GB")
    return size


@command(
    short_help="report what a topology costs and what would keep it from starting",
    help="Report what topologies cost by the hour, what would keep them from starting on AWS, and what the guard will "
    "do. It creates nothing. Without a topology it lists those of topologies/, a line each. With --rows it predicts "
    "what preprocessing and training take and cost there, stage by stage; with --all on single machines and on every "
    "topology, so that you can choose.",
    epilog="""\
\b
Examples:
  shoal plan starter --hours 3
  shoal plan mixed-g5-g4dn --rows 21300000 --raw-bytes 92.45GB --epochs 10
  shoal plan --all --rows 21300000 --raw-bytes 92.45GB --epochs 10
  shoal plan starter --rows 21300000 --rates results/model

The exit status is 1 if a deployment would be refused.
""",
)
@click.argument(
    "topologies",
    nargs=-1,
    metavar="[NAME_OR_FILE]...",
    shell_complete=complete_topology,
    help="topologies: those of topologies/ by name, your own by file",
)
@option(
    "--hours",
    type=click.FloatRange(0, min_open=True),
    metavar="H",
    help="the hours to price (default: the guard's max_hours)",
)
@option("--offline", is_flag=True, help="do not ask AWS")
@option("--deployment", metavar="NAME", help="the deployment's name (default: the topology's)")
@option("--owner", metavar="NAME", help="who is responsible for it (default: the topology's owner, or you)")
@option("--rows", group=_WORK, type=click.IntRange(min=1), metavar="N", help="rows of the dataset: distinct texts")
@option(
    "--raw-bytes",
    group=_WORK,
    type=Converted(_read_size),
    metavar="SIZE",
    help="of the raw reviews, unpacked, such as 92.45GB; without it the dataset is there already",
)
@option(
    "--epochs",
    group=_WORK,
    type=click.IntRange(min=1),
    default=10,
    metavar="E",
    help="passes over the training rows (default: 10)",
)
@option(
    "--rates",
    group=_WORK,
    type=click.Path(path_type=Path),
    metavar="RECORD",
    help="predict the training by the record of a run, its record.jsonl or its output folder, on the same kinds of "
    "GPUs or on this machine (default: by the catalogue, for an LSTM as the reference's)",
)
@option("--all", "every", group=_WORK, is_flag=True, help="compare one machine and all topologies that AWS can start")
def run(
    *,
    topologies: tuple[str, ...],
    hours: float | None,
    offline: bool,
    deployment: str | None,
    owner: str | None,
    **asked: Any,
) -> Result:
    _require_topologies(topologies, hours=hours, deployment=deployment)
    work, measured = _read_work(topologies, **asked)
    if not topologies:
        return _list_choices(work, measured) if work else _list_topologies()
    from bootstrap.lifecycle import plan
    from infra import caller, topology

    made = []
    for name in topologies:
        chosen = topology.load(name, cdk.TOPOLOGIES)
        made.append(
            plan.make_plan(
                chosen,
                deployment=check_name(deployment or chosen.name),
                owner=caller.owner_of(chosen, owner),
                hours=hours,
                session=None if offline else _session(chosen.region),
                endpoint=os.environ.get("AWS_ENDPOINT_URL"),
            )
        )
    texts, contents, failures = [], [], []
    for each in made:
        name = deployment or each.topology.name
        texts.append("\n".join(lines(each, deployment=name)))
        contents.append(content(each, deployment=name))
        if work:
            from experiments.choices import predict

            try:
                found = predict(each.topology, work, measured)
            except ExperimentError as error:
                contents[-1]["prediction"] = None
                failures.append(str(error))
                continue
            early = () if offline else _credentials_note(each.topology.region, found.seconds.middle)
            texts.append("\n".join([*_prediction_lines(found), *early]))
            contents[-1]["prediction"] = found.content()
    status = int(bool(failures) or any(each.refused for each in made))
    return Result({"plans": contents}, texts, status, failures=failures)


def _read_work(
    topologies: Sequence[str],
    *,
    rows: int | None,
    raw_bytes: float | None,
    epochs: int,
    rates: Path | None,
    every: bool,
) -> "tuple[Work | None, Rates | None]":
    """The work to predict, and the rates of the run to predict it by. Raises UsageError for options that do not go
    together, and ExperimentError for a run that cannot be read."""
    if rows is None and (every or raw_bytes is not None or rates is not None):
        raise UsageError("--all, --raw-bytes and --rates go with the work to predict; give its --rows")
    if every if topologies else rows is not None and not every:
        raise UsageError("--rows goes with topologies, or with --all and no topology; give one of them")
    if rows is None:
        return None, None
    from experiments.forecast import Work, read_rates

    return Work(rows=rows, epochs=epochs, raw_bytes=raw_bytes), read_rates(rates) if rates else None


def _prediction_lines(found: "Prediction") -> Iterator[str]:
    """The stages of a prediction, line by line."""
    rows = [
        (each.name, each.seconds.time() if each.seconds.high else "", each.dollars.dollars(), each.basis)
        for each in found.stages
    ]
    if found.by_use:
        rows.append(("the share, by use", "", f"${found.by_use:,.2f}", "the price list"))
    rows.append(("all", found.seconds.time(), found.dollars.dollars(), ""))
    yield table(rows, ("stage", "time", "cost", "by"), right=(1, 2), ruled=True)
    yield ""
    yield "Each with the range in which it is expected, of a training by " + (
        "an LSTM like the reference's." if found.model == "lstm" else f"--model {found.model}."
    )
    if found.unknown:
        yield f"The dollars are without {', '.join(found.unknown)}, whose prices are not known."


def _list_choices(work: "Work", measured: "Rates | None") -> Result:
    """Print what the work takes and costs on single machines, and on the topologies that can do it."""
    from bootstrap.lifecycle.plan import retired
    from experiments.choices import machines, of_gpus, predict
    from infra import topology

    alone, clusters = machines(work, _REGION, measured), []
    for name in topology.names(cdk.TOPOLOGIES):
        chosen = topology.load(name, cdk.TOPOLOGIES)
        if chosen.training and not retired(chosen):
            with suppress(ExperimentError):  # it lacks nodes for the work, or the GPUs of the run
                clusters.append(predict(chosen, work, of_gpus(measured)))
    clusters.sort(key=lambda each: (each.dollars.middle, each.seconds.middle))
    priced = [each for each in (*alone, *clusters) if each.dollars.high]
    marks = {
        "cheapest": min(priced, key=lambda each: each.dollars.middle),
        "fastest": min(priced, key=lambda each: each.seconds.middle),
    }

    def listed(found: "Sequence[Prediction]") -> list[dict[str, Any]]:
        return [{**each.content(), **{mark: each is best for mark, best in marks.items()}} for each in found]

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
    heads = ("machine or topology", "model", "cost", "time", "")
    text = [
        table(rows, heads, right=(2, 3), ruled=True),
        "",
        f"Single machines come first: this one, and those of EC2 in {_REGION} that are cheapest, or dearer and faster "
        "by a quarter.",
        "No run on AWS has checked these figures; `shoal plan NAME` with the same options says what each follows from.",
    ]
    return Result({"machines": listed(alone), "topologies": listed(clusters)}, ["\n".join(text)])


def _require_topologies(topologies: Sequence[str], *, hours: float | None, deployment: str | None) -> None:
    """Raise UsageError for options that do not go with these topologies."""
    if hours is not None and not topologies:
        raise UsageError("--hours goes with topologies; name them")
    if deployment and len(topologies) != 1:
        raise UsageError("--deployment goes with one topology; name it")


def _session(region: str) -> "boto3.Session":
    from bootstrap.lifecycle import preflight  # this import loads boto3

    return preflight.session(region)


def _credentials_note(region: str, seconds: float) -> Iterator[str]:
    """A sentence where the credentials end before so many seconds of work do."""
    from bootstrap.aws.account import credentials_warning

    then = "nodes and steps go on without them, but no command follows them; renew them before they end"
    if sentence := credentials_warning(_session(region), seconds, "all of this", then):
        yield f"Note: {sentence}."


def lines(made: "DeploymentPlan", *, deployment: str) -> Iterator[str]:
    """A plan for a person, line by line."""
    from bootstrap.lifecycle.plan import guard_sentences
    from infra.cost import hourly_of_run, hourly_of_shell

    chosen, least = made.topology, "at least " if made.unknown else ""
    yield f"{chosen.name}: {chosen.description} ({chosen.region})"
    yield ""
    bill = [
        (
            row.part,
            row.item + (" (spot: at most)" if row.at_most else ""),
            str(row.quantity),
            *(("unknown",) * 2 if row.unit_price is None else (_each(row), f"{row.hourly:.4f}")),
        )
        for row in made.bill
    ]
    yield table(
        [*bill, ("", f"everything at work{least and ', at least'}", "", "", f"{made.hourly:.4f}")],
        ("part", "what", "number", "$ an hour each", "$ an hour"),
        right=(2, 3, 4),
        ruled=True,
    )
    yield ""
    yield f"{made.hours:g} h with everything at work: {least}${made.hours * made.hourly:.2f}."
    if made.resting < made.hourly:
        idle = "with node groups at zero" if made.topology.training else "before a training"
        yield f"After the deployment, {idle}: {least}${made.resting:.2f} an hour."
    if chosen.max_dollars and not least:
        hours = chosen.max_dollars / hourly_of_run(chosen)
        yield (
            f"A run is stopped with a checkpoint before its nodes cost ${chosen.max_dollars:.2f} (max_dollars): after "
            f"{hours:.1f} h of the nodes that train."
        )
    if saved := hourly_of_shell(chosen):
        yield f"Without a shell on nodes (network, shell) there are no interface endpoints: ${saved:.2f} an hour less."
    by_use = "; ".join(
        f"{use.item}: {'unknown' if use.price is None else f'${use.price:g}'} a {use.unit}" for use in made.by_use
    )
    yield f"By use: {by_use}; the guard: a few cents a day."
    yield ""
    yield "The guard:"
    yield from (f"  {sentence}" for sentence in guard_sentences(chosen, deployment=deployment))
    yield ""
    yield f"Checked: the topology; AWS: {made.account}."
    for finding in made.findings:
        level = "on AWS an error" if finding.level == "error" and finding not in made.refused else finding.level
        yield f"  {level}: {finding.sentence}"


def _each(row: "Row") -> str:
    cheapest = "" if row.cheapest is None else f"{row.cheapest:.4f} to "
    return f"{cheapest}{row.unit_price:.4f}"


def content(made: "DeploymentPlan", *, deployment: str) -> dict[str, Any]:
    """A plan for a program."""
    from bootstrap.lifecycle.plan import guard_sentences
    from infra.cost import hourly_of_shell

    return {
        "topology": made.topology.name,
        "deployment": deployment,
        "region": made.topology.region,
        "bill": [{**asdict(row), "hourly": row.hourly} for row in made.bill],
        "unknown": made.unknown,
        "by_use": [asdict(use) for use in made.by_use],
        "hourly": made.hourly,
        "resting": made.resting,
        "saved_without_shell": hourly_of_shell(made.topology),
        "max_dollars": made.topology.max_dollars,
        "hours": made.hours,
        "price": made.hours * made.hourly,
        "guard": guard_sentences(made.topology, deployment=deployment),
        "asked": made.account,
        "findings": [asdict(finding) for finding in made.findings],
        "refused": bool(made.refused),
    }


def _list_topologies() -> Result:
    """Print a line for each topology, also where another one cannot be read."""
    from bootstrap.lifecycle import plan
    from infra import topology

    found: list[dict[str, Any]] = []
    rows: list[tuple[str, ...]] = []
    faults = []
    for name in topology.names(cdk.TOPOLOGIES):
        try:
            made = plan.make_plan(topology.load(name, cdk.TOPOLOGIES), deployment=name, owner="")
        except TopologyError as error:
            faults.append(str(error))
            found.append({"topology": name, "error": str(error)})
            continue
        chosen, gone = made.topology, plan.retired(made.topology)
        gpus = plan.gpus(chosen)
        price = f"{made.hourly:.2f}{' or more' if made.unknown else ''}"
        rows.append((name, price, str(gpus), "yes" if gone else "", chosen.description))
        found.append(
            {"topology": name, "hourly": made.hourly, "gpus": gpus, "retired": gone, "description": chosen.description}
        )
    heads = ("topology", "$ an hour", "GPUs", "retired", "what it is for")
    listed = table(rows, heads, right=(1, 2), ruled=True)
    return Result({"topologies": found}, [listed, "\n".join(faults)], int(bool(faults)))
