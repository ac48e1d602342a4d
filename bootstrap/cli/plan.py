"""`shoal plan`: what a topology would cost, what would keep it from starting, what the guard will do."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bootstrap.aws import cdk
from bootstrap.cli import plan_words, plan_work
from bootstrap.cli.command import Converted, command, complete_topology, option, typed_options
from bootstrap.cli.figures import read_size
from bootstrap.cli.input_options import NOTES, READING
from bootstrap.cli.like import like_options
from bootstrap.cli.output import json_option, show, table
from bootstrap.cli.target import check_name
from common.errors import UsageError
from infra.topology_error import TopologyError

if TYPE_CHECKING:
    import boto3

    from bootstrap.lifecycle.plan import DeploymentPlan
    from infra.rules import Finding

_DATA, _CHOICE, _HERE = "The work", "The choice", "This machine"


@command(
    short_help="report what a topology costs and what would keep it from starting",
    help="Report what topologies cost by the hour, what would keep them from starting on AWS, and what the guard will "
    "do. It creates nothing. Without a topology it lists those of topologies/, a line each. With --rows it predicts "
    "what training on so many rows takes and costs, and with --raw-bytes also their preprocessing; with --like it "
    "looks at your reviews for both; with --all it tells which topology to take. With --words it predicts how fast "
    "word embeddings are learnt in each mode, and from when several GPUs beat one. It says where one "
    "machine is enough.",
    epilog="""\
\b
Examples:
  shoal plan starter --hours 3
  shoal plan mixed-g5-g4dn --rows 21300000 --raw-bytes 92.45GB --epochs 10
  shoal plan starter --like 'reviews/*.json.gz' --epochs 10
  shoal plan --all --rows 21300000 --epochs 10 --max-price 30 --max-hours 2
  shoal plan starter --rows 21300000 --rates results/starter-rates
  shoal plan --local --rows 200000 --epochs 5 --rates results/rates
  shoal plan embeddings-4x1gpu --words 100000000 --embedding 200

The exit status is 1 if a deployment would be refused, or nothing fits.
""",
    notes={READING: f"With --like. {NOTES[READING]}"},
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
@like_options(_DATA)
@plan_words.word_options
@option("--rows", group=_DATA, type=click.IntRange(min=1), metavar="N", help="rows of the dataset: distinct texts")
@option(
    "--raw-bytes",
    group=_DATA,
    type=Converted(read_size),
    metavar="SIZE",
    help="of the raw reviews, unpacked, such as 92.45GB; without it the dataset is there already",
)
@option(
    "--epochs",
    group=_DATA,
    type=click.IntRange(min=1),
    default=10,
    metavar="E",
    help="passes over the training rows (default: 10, with --words 5)",
)
@option(
    "--global-batch",
    group=_DATA,
    type=click.IntRange(min=1),
    metavar="ROWS",
    help="rows a step (default: 1024, and with --local 256)",
)
@option(
    "--rates",
    group=_DATA,
    several=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="predict the training by the output of `shoal calibrate`, or by trainings with the same model and ranks; "
    "without it by the catalogue, for an LSTM as the reference's. Of a topology those of this machine tell whether it "
    "is enough",
)
@option(
    "--upload-mbit",
    group=_DATA,
    type=click.FloatRange(min=0, min_open=True),
    metavar="MBIT",
    help="the Mbit/s of your own line, over which the reviews or the dataset are uploaded and the model is fetched "
    "(default: they are in S3 already)",
)
@option("--local", group=_HERE, is_flag=True, help="predict a training on this machine, by --rates")
@option("--spot", group=_DATA, is_flag=True, help="GPU nodes as spot capacity, with the interruptions to expect")
@option("--all", "every", group=_CHOICE, is_flag=True, help="compare one machine and all topologies that AWS can start")
@option(
    "--measure",
    group=_CHOICE,
    is_flag=True,
    help="with --all, first measure this machine, for half a minute; without it each core of it counts as the one that "
    "was measured",
)
@option(
    "--max-price",
    group=_CHOICE,
    type=click.FloatRange(min=0),
    metavar="DOLLARS",
    help="leave out what is expected to cost more",
)
@option(
    "--max-hours",
    group=_CHOICE,
    type=click.FloatRange(min=0),
    metavar="H",
    help="leave out what is expected to take longer",
)
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    topologies: tuple[str, ...],
    hours: float | None,
    offline: bool,
    deployment: str | None,
    owner: str | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Run `shoal plan`."""
    typed = typed_options(ctx)
    plan_words.check_options(asked, list(typed), topologies)
    if asked["words"] is None:
        plan_work.check_options(ctx, topologies)
    _require_topologies(topologies, hours=hours, deployment=deployment)
    work, words = plan_work.read_work(ctx), plan_words.read_work(asked, list(typed))
    if words and asked["local"]:
        return words.show_here(asked["ranks"], as_json=as_json)
    if work and asked["local"]:
        return plan_work.show_here(work, as_json=as_json)
    if work and asked["every"]:
        limits = {"most_dollars": asked["max_price"], "most_hours": asked["max_hours"]}
        return plan_work.show_choice(work, limits, measure=asked["measure"], as_json=as_json)
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
    texts, contents = ["\n".join(work.lines())] if work and work.extent else [], []
    for each in made:
        name = deployment or each.topology.name
        texts.append("\n".join(lines(each, deployment=name)))
        contents.append(content(each, deployment=name))
        if work:
            from bootstrap.cli import predicted

            found = work.on(each.topology)
            early = () if offline else _credentials_note(each.topology.region, found.seconds.middle)
            texts.append("\n".join([*predicted.lines(found), *work.notes(found), *early]))
            contents[-1]["prediction"] = {**predicted.content(found), **work.compared(each.topology)}
        if words:
            texts.append("\n".join(words.lines(each.topology)))
            contents[-1]["prediction"] = words.content(each.topology)
    show({"plans": contents, **(work.content() if work else {})}, "\n\n".join(texts), as_json=as_json)
    return int(any(each.refused for each in made))


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
            *(("unknown",) * 2 if row.unit_price is None else (f"{row.unit_price:.4f}", f"{row.hourly:.4f}")),
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
    if made.scaled > made.hourly:
        yield f"With managed scaling at its maximum: {least}${made.scaled:.2f} an hour."
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
        "scaled": made.scaled,
        "saved_without_shell": hourly_of_shell(made.topology),
        "max_dollars": made.topology.max_dollars,
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
        price = f"{made.hourly:.2f}{' or more' if made.unknown else ''}"
        rows.append((name, price, str(gpus), "yes" if gone else "", chosen.description))
        found.append(
            {"topology": name, "hourly": made.hourly, "gpus": gpus, "retired": gone, "description": chosen.description}
        )
    heads = ("topology", "$ an hour", "GPUs", "retired", "what it is for")
    listed = table(rows, heads, right=(1, 2), ruled=True)
    show({"topologies": found}, "\n".join([listed, *faults]), as_json=as_json)
    return int(bool(faults))
