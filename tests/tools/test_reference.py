"""The generated pages show every command, option, topology field and policy, and IAM accepts the policies."""

import json
from dataclasses import fields
from importlib import import_module

import boto3
import click
import pytest

from infra import catalog
from infra.policies import MOST_CHARACTERS, POLICIES, document
from infra.schema import schema
from shoal.cli.commands import COMMANDS
from tools import reference
from tools.permissions import page, pasted
from trainer.output import summary
from trainer.output.lines import Line

KINDS = Line.__subclasses__()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_commands_shows_every_option(name) -> None:
    section = reference.commands().split(f"\n## shoal {name}\n", 1)[1].split("\n## ", 1)[0]
    module, _ = COMMANDS[name]
    options = [each for each in import_module(module).run.params if isinstance(each, click.Option)]
    missing = [each.opts[0] for each in options if each.opts[0] not in section]
    assert set(missing) <= {"--json", "--help-all"}


def test_the_page_of_a_topology_shows_every_field_of_every_part() -> None:
    page = reference.topology()
    whole = schema()
    parts = {"Topology": whole, **whole["$defs"]}
    for title, part in parts.items():
        section = page.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
        assert [field for field in part["properties"] if f"\n| `{field}` |" not in section] == []


def test_the_page_of_instance_types_shows_hardware_prices_and_replacements() -> None:
    _, table = reference.instance_types().split("|---|\n")
    assert [row.split(" | ")[0] for row in table.splitlines()] == [f"| {name}" for name in catalog.catalog().types]
    p3 = "| p3.8xlarge | 32 | 244 | 4 x V100, 16 GiB | 7.0 | 10 |  | 12.24 |  | g6e.12xlarge, since 2025-12-20 |"
    assert p3 in table.splitlines()


def test_the_page_of_the_record_shows_every_kind_and_field() -> None:
    page = reference.record()
    kinds = {kind.__name__.lower(): {each.name for each in fields(kind)} - {kind.rest, "time"} for kind in KINDS}
    stored = set(kinds).union(*kinds.values())
    parts = (summary.Totals, summary.SinceStart, summary.Metrics, summary.Embeddings)
    stored |= {name for part in parts for name in part.__annotations__}
    assert sorted(name for name in stored if f"`{name}`" not in page) == []


def test_signs_of_markdown_in_a_help_do_not_break_a_row() -> None:
    rows = [row for row in reference.commands().splitlines() if row.startswith("| `")]
    assert [row for row in rows if row.replace("\\|", "").count("|") != 3] == []


def test_the_page_shows_every_policy_as_json() -> None:
    assert [policy for policy in POLICIES if pasted(policy) not in page()] == []


@pytest.mark.parametrize("policy", POLICIES)
def test_iam_accepts_the_policy(policy, aws) -> None:
    assert len(json.dumps(document(policy), separators=(",", ":"))) <= MOST_CHARACTERS
    sids = [statement["Sid"] for statement in document(policy)["Statement"]]
    assert len(sids) == len(set(sids))
    iam = boto3.client("iam")
    made = iam.create_policy(PolicyName=policy, PolicyDocument=json.dumps(document(policy)))["Policy"]
    assert made["IsAttachable"]
