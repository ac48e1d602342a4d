"""Generates reference pages from declarations: commands, topologies, and the record of a run."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

import click

from infra import catalog, cost
from infra.schema import schema
from infra.topology import load, names_in
from shoal.aws.cdk import TOPOLOGIES
from shoal.cli.commands import COMMANDS
from trainer.output import lines, summary

_COMMANDS = """\
# Commands

`shoal COMMAND --help` shows the common options of a command, and `--help-all` shows all of them. An option that takes
several values takes them separated by spaces. Every command that prints a result prints it as JSON with `--json`. A
command with `--config` also reads its options from a YAML file.

## Exit status

| status | meaning |
|---|---|
| 0 | The command succeeded. |
| 1 | The command failed. Its last line says what happened and what to do. |
| 2 | The command line is wrong. The command did nothing. |
| 130 | Ctrl-C stopped the command. A training run has written a checkpoint. |
| 143 | SIGTERM stopped the command. A training run has written a checkpoint. |
"""

_TOPOLOGY = """\
# Fields of a topology

A topology is a YAML file, such as those in `topologies/`. The first line of a file names `topologies/schema.json`,
which editors use to complete and check fields. `shoal plan FILE` checks all rules.
[Write a topology](../how-to/write-a-topology.md) explains common changes.

A field without a default is required.
"""
_SHIPPED = """\
# Shipped topologies

[Choose a topology](../how-to/choose-a-topology.md) helps to choose one of these topologies in `topologies/`.

Prices are in dollars per hour, on demand, in us-east-1, from `infra/prices/`. Spot nodes count at
on-demand prices, which spot prices do not exceed. S3 and EFS are charged by use, in addition to these prices.

- **Waiting**: between the deployment and a training run. The EMR cluster runs, but no GPU nodes.
- **Everything running**: everything runs at the same time. This is rare, because preprocessing comes before training.

AWS no longer starts the instances of *retired* topologies. These topologies run on the emulator, for comparisons with
the reference system.

| topology | description | waiting | everything running |
|---|---|---|---|
"""
_INSTANCE_TYPES = """\
# Instance types

A topology can name these types. AWS no longer starts a type that has a replacement.

- **Network**: Gbit/s of one network card, without bursts. EFA uses several cards.
- **Prices**: dollars per hour in us-east-1, on demand, on {date}. The source is {source}. A node of an EMR cluster also
  costs EMR's surcharge.

The files in `packages/guard/shoal_guard/prices/` have the prices and zones of each region.

| type | vCPUs | GiB | GPUs | capability | network | with EFA | price | EMR | replacement |
|---|---|---|---|---|---|---|---|---|---|
"""
_RECORD = """\
# Record and summary of a run

[Files of a run](run-files.md) lists the other files.

## record.jsonl

Each line is a JSON object for one event. It has the fields `kind` and `time` (Unix timestamp), and the fields of its
kind. A resumed run appends another `start`; steps after its `from_step` then appear twice. Readers skip lines that they
cannot parse.
"""
_SUMMARY = """\
## summary.json

The file is a JSON object with the fields of these tables.
"""
_SUMMARY_PARTS = {
    "Whole run": "Totals",
    "Since the latest start": "SinceStart",
    "Metrics": "Metrics",
    "Word embeddings": "Embeddings",
}
_IN_EVERY_HELP = ("help", "help_all", "json")


def commands() -> str:
    """Return a Markdown page with the help and a table of all options of each command."""
    found = (
        line
        for name, (module, _) in COMMANDS.items()
        for line in _command(f"shoal {name}", import_module(module).run, 2)
    )
    return "\n".join([_COMMANDS, *found])


def _command(name: str, command: click.Command, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}\n\n{_line(command.help or '')}\n"
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _command(f"{name} {inner.name}", inner, level + 1)
        return
    context = command.make_context(name, [], resilient_parsing=True)
    parameters = command.get_params(context)
    for argument in parameters:
        if isinstance(argument, click.Argument):
            yield f"Argument: `{argument.make_metavar(context)}`\n"
    yield "| option | meaning |\n|---|---|"
    for option in parameters:
        if isinstance(option, click.Option) and option.name not in _IN_EVERY_HELP:
            flags, meaning = option.get_help_record(context) or ("", "")
            yield f"| {_code(flags)} | {_line(meaning)} |"
    yield ""


def topology() -> str:
    """Return a Markdown page with a table of the fields of a topology, and one table for each of its parts."""
    whole = schema()
    parts = whole.pop("$defs")
    return "\n".join(
        [_TOPOLOGY, *_fields("Topology", whole), *(line for name in parts for line in _fields(name, parts[name]))]
    )


def _fields(title: str, part: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {title}\n\n{_line(part['description'])}\n\n| field | must be | default | example |\n|---|---|---|---|"
    for name, field in part["properties"].items():
        default = "" if field.get("default") is None else f"`{field['default']}`"
        if name not in part.get("required", ()) and not default:
            default = "nothing"
        example = "".join(_code(str(each)) for each in field.get("examples", ())[:1])
        yield f"| `{name}` | {_line(field['description'])} | {default} | {example} |"
    yield ""


def shipped_topologies() -> str:
    """Return a Markdown page with one table row per topology in `topologies/`, with its description and prices."""
    return _SHIPPED + "".join(map(_shipped, names_in(TOPOLOGIES)))


def _shipped(name: str) -> str:
    spec = load(name, TOPOLOGIES)
    waiting = sum(row.hourly for row in cost.rows(spec) if row.since != "train")
    return f"| `{name}` | {_line(spec.description)} | {waiting:.2f} | {cost.hourly(spec):.2f} |\n"


def instance_types() -> str:
    """Return a Markdown page with one table row per instance type: hardware, and prices in us-east-1."""
    prices = catalog.prices("us-east-1")
    rows = (_instance_type(kind, prices) for kind in catalog.catalog().types.values())
    return _INSTANCE_TYPES.format(date=prices.date, source=prices.source) + "".join(rows)


def _instance_type(kind: catalog.InstanceType, prices: catalog.PriceList) -> str:
    gpu, efa, retired = kind.gpu, kind.efa, kind.retired
    cells = (
        kind.name,
        kind.vcpu,
        f"{kind.memory:g}",
        f"{gpu.count} x {gpu.name}, {gpu.memory:g} GiB" if gpu else "",
        gpu.capability if gpu else "",
        f"{kind.network:g}",
        f"{efa.network:g}" if efa else "",
        prices.instances.get(kind.name, ""),
        prices.emr.get(kind.name, ""),
        f"{retired.successor}, since {retired.since}" if retired else "",
    )
    return f"| {' | '.join(map(str, cells))} |\n"


def record() -> str:
    """Return a page in Markdown: the fields of each kind of line in record.jsonl, and of summary.json."""
    kinds = _documented(lines)
    parts = _documented(summary)
    return "\n".join(
        [
            _RECORD,
            *(_table(f"`{kind.__name__.lower()}`", kinds[kind.__name__]) for kind in lines.Line.__subclasses__()),
            _SUMMARY,
            *(_table(title, parts[name]) for title, name in _SUMMARY_PARTS.items()),
        ]
    )


def _documented(module: ModuleType) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the docstring of each class of a module, and the docstrings of its fields."""
    classes = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ClassDef)]
    return {node.name: (ast.get_docstring(node) or "", dict(_field_docstrings(node))) for node in classes}


def _field_docstrings(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in pairwise(node.body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, text


def _table(title: str, part: tuple[str, Mapping[str, str]]) -> str:
    text, fields = part
    rows = "".join(f"| `{name}` | {_line(meaning)} |\n" for name, meaning in fields.items())
    return f"### {title}\n\n{text}\n\n| field | meaning |\n|---|---|\n{rows}"


def _line(text: str) -> str:
    return re.sub(r"([|\[\]<>])", r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`".replace("|", "\\|")
