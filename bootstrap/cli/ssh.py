"""`shoal ssh`: a shell on a node of a deployment, by Systems Manager, or on a host of one's own, by SSH."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.target import Target
from common.display import plural
from common.errors import ShoalError

_PLUGIN = "session-manager-plugin"


@command(
    json="",
    short_help="open a shell on a node",
    help="Open a shell on a node of a deployment, by Systems Manager, where its topology says `network: {shell: "
    "true}`, or by SSH on one of the hosts in a FILE, as `shoal train --hosts` takes it. NODE is its number, from 1 in "
    "the order of `shoal status` or of the file, or a node's instance id, or a host as the file names it.",
    epilog="""\
\b
Examples:
  shoal ssh starter 1
  shoal ssh hosts.txt ann@10.0.0.2
""",
)
@click.argument("where", metavar="NAME|FILE")
@click.argument("node", metavar="NODE")
@option("--region", metavar="REGION", help="of a deployment (default: that of your AWS configuration, or us-east-1)")
def run(where: str, node: str, region: str | None) -> int:
    words = _to_host(Path(where), node) if Path(where).is_file() else _to_node(Target(where, region, "ssh"), node)
    if shutil.which(words[0]) is None:
        raise ShoalError(f"the command {words[0]} is not there; install it, and type this again")
    os.execvp(words[0], words)  # noqa: S606


def _to_host(file: Path, node: str) -> list[str]:
    from bootstrap.hosts.hosts_file import read_hosts

    hosts = read_hosts(file).hosts
    host = hosts[_place(node, [each.called for each in hosts], f"hosts in {file}")]
    port = ["-p", str(host.port)] if host.port else []
    return ["ssh", *port, f"{host.user}@{host.name}" if host.user else host.name]


def _to_node(target: Target, node: str) -> list[str]:
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.nodes import fleet

    deployment = find_deployment(target.name, target.account)
    instances = [each.instance_id for each in fleet.nodes(deployment)]
    if not instances:
        raise ShoalError(f"no GPU node of '{deployment.name}' runs; they do while a training uses them")
    instance = instances[_place(node, instances, f"nodes of '{deployment.name}'")]
    if shutil.which(_PLUGIN) is None:
        raise ShoalError(
            f"a shell on AWS needs {_PLUGIN}, whose installation the user guide of Systems Manager describes; the "
            f"topology '{deployment.topology}' must say `network: {{shell: true}}`"
        )
    return ["aws", "ssm", "start-session", "--region", str(deployment.session.region_name), "--target", instance]


def _place(node: str, known: Sequence[str], what: str) -> int:
    if node in known:
        return known.index(node)
    if node.isascii() and node.isdecimal() and 0 < int(node) <= len(known):
        return int(node) - 1
    raise ShoalError(
        f"{node} is none of the {plural(len(known), what.partition(' ')[0][:-1])} "
        f"{what.partition(' ')[2]}: {', '.join(known)}"
    )
