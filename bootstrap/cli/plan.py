"""`shoal plan`: what a topology would cost, what would keep it from starting, what the guard will do."""

import math
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from bootstrap.aws import cdk
from bootstrap.cli.command import command, complete_topology, option
from bootstrap.cli.output import json_option, show, table
from bootstrap.cli.target import check_name
from bootstrap.errors import UsageError
from infra.errors import TopologyError

if TYPE_CHECKING:
    import boto3

    from bootstrap.lifecycle.plan import DeploymentPlan
    from infra.rules import Finding


@command(
    short_help="report what a topology costs and what would keep it from starting",
    help="Report what topologies cost by the hour, what would keep them from starting on AWS, and what the guard will "
    "do. It creates nothing. Without a topology it lists those of topologies/, a line each.",
    epilog="Example: shoal plan starter --hours 3. The exit status is 1 if a deployment would be refused.",
)
@click.argument(
    "topologies",
    nargs=-1,
    metavar="[NAME_OR_FILE]...",
    shell_complete=complete_topology,
    help="topologies: those of topologies/ by name, your own by file",
)
@option("--hours", type=float, metavar="H", help="the hours to price (default: the guard's max_hours)")
@option("--offline", is_flag=True, help="do not ask AWS")
@option("--deployment", metavar="NAME", help="the deployment's name (default: the topology's)")
@option("--owner", metavar="NAME", help="who is responsible for it (default: the topology's owner, or you)")
@json_option
def run(
    topologies: tuple[str, ...],
    hours: float | None,
    offline: bool,
    deployment: str | None,
    owner: str | None,
    as_json: bool,
) -> int:
    """Run `shoal plan`."""
    if hours is not None and not 0 < hours < math.inf:
        raise UsageError(f"--hours is {hours:g}, but must be a number above 0")
    if hours is not None and not topologies:
        raise UsageError("--hours goes with topologies; name them")
    if deployment and len(topologies) != 1:
        raise UsageError("--deployment goes with one topology; name it")
    if not topologies:
        return _list_topologies(as_json=as_json)
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
    text = "\n\n".join("\n".join(lines(each, deployment=deployment or each.topology.name)) for each in made)
    show(
        {"plans": [content(each, deployment=deployment or each.topology.name) for each in made]}, text, as_json=as_json
    )
    return int(any(each.refused for each in made))


def _session(region: str) -> "boto3.Session":
    from bootstrap.lifecycle import preflight  # this import loads boto3

    return preflight.session(region)


def lines(made: "DeploymentPlan", *, deployment: str) -> Iterator[str]:
    """A plan for a person, line by line."""
    from bootstrap.lifecycle.plan import guard_sentences

    chosen = made.topology
    yield f"{chosen.name}: {chosen.description} ({chosen.region})"
    yield ""
    bill = [
        (
            row.part,
            row.item + (" (spot: at most)" if row.at_most else ""),
            str(row.quantity),
            f"{row.unit_price:.4f}",
            f"{row.hourly:.4f}",
        )
        for row in made.bill
    ]
    yield table(
        [*bill, ("", "everything at work", "", "", f"{made.hourly:.4f}")],
        ("part", "what", "number", "$ an hour each", "$ an hour"),
        right=(2, 3, 4),
        ruled=True,
    )
    yield ""
    yield f"{made.hours:g} h with everything at work: ${made.hours * made.hourly:.2f}."
    if made.resting < made.hourly:
        yield f"After the deployment, with node groups at zero: ${made.resting:.2f} an hour."
    if made.scaled > made.hourly:
        yield f"With managed scaling at its maximum: ${made.scaled:.2f} an hour."
    by_use = "; ".join(f"{use.item}: ${use.price:g} a {use.unit}" for use in made.by_use)
    yield f"By use: {by_use}; the guard's function: less than a cent a day."
    yield ""
    yield "The guard:"
    yield from (f"  {sentence}" for sentence in guard_sentences(chosen, deployment=deployment))
    yield ""
    yield f"Checked: the topology; AWS: {made.account}."
    yield from (f"  {_level(made, finding)}: {finding.sentence}" for finding in made.findings)


def content(made: "DeploymentPlan", *, deployment: str) -> dict[str, Any]:
    """A plan for a program."""
    from bootstrap.lifecycle.plan import guard_sentences

    return {
        "topology": made.topology.name,
        "deployment": deployment,
        "region": made.topology.region,
        "bill": [{**asdict(row), "hourly": row.hourly} for row in made.bill],
        "by_use": [asdict(use) for use in made.by_use],
        "hourly": made.hourly,
        "resting": made.resting,
        "scaled": made.scaled,
        "hours": made.hours,
        "price": made.hours * made.hourly,
        "guard": guard_sentences(made.topology, deployment=deployment),
        "asked": made.account,
        "findings": [asdict(finding) for finding in made.findings],
        "refused": bool(made.refused),
    }


def _level(made: "DeploymentPlan", finding: "Finding") -> str:
    if finding.level == "error" and finding not in made.refused:
        return "on AWS an error"
    return str(finding.level)


def _list_topologies(*, as_json: bool) -> int:
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
        price = f"{made.hourly:.2f}"
        rows.append((name, price, str(gpus), "yes" if gone else "", chosen.description))
        found.append(
            {"topology": name, "hourly": made.hourly, "gpus": gpus, "retired": gone, "description": chosen.description}
        )
    heads = ("topology", "$ an hour", "GPUs", "retired", "what it is for")
    listed = table(rows, heads, right=(1, 2), ruled=True)
    show({"topologies": found}, "\n".join([listed, *faults]), as_json=as_json)
    return int(bool(faults))
