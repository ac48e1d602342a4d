"""`shoal ssh`: opens a shell on a node of a deployment, by Systems Manager."""

import os
import shutil

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.target import Target
from common.errors import ShoalError

_PLUGIN = "session-manager-plugin"


@command(
    json="",
    help="Open a shell on a node of a deployment, by Systems Manager, where its topology says `network: {shell: "
    "true}`. NODE is its number, from 1 in the order of `shoal status`, or its instance id.",
    epilog="Example: shoal ssh starter 1",
)
@click.argument("name", metavar="NAME")
@click.argument("node", metavar="NODE")
@option("--region", metavar="REGION", help="its region (default: that of your AWS configuration, or us-east-1)")
def run(name: str, node: str, region: str | None) -> int:
    words = _to_node(Target(name, region, "ssh"), node)
    if shutil.which(words[0]) is None:
        raise ShoalError(f"the command {words[0]} is not there; install it, and type this again")
    os.execvp(words[0], words)  # noqa: S606


def _to_node(target: Target, node: str) -> list[str]:
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.nodes import fleet

    deployment = find_deployment(target.name, target.account)
    instances = [each.instance_id for each in fleet.nodes(deployment)]
    if not instances:
        raise ShoalError(f"no GPU node of '{deployment.name}' runs; they do while a training uses them")
    if node.isdecimal() and 0 < int(node) <= len(instances):
        node = instances[int(node) - 1]
    if node not in instances:
        raise ShoalError(f"{node} is none of the nodes of '{deployment.name}': {', '.join(instances)}")
    if shutil.which(_PLUGIN) is None:
        raise ShoalError(
            f"a shell on AWS needs {_PLUGIN}, whose installation the user guide of Systems Manager describes; the "
            f"topology '{deployment.topology}' must say `network: {{shell: true}}`"
        )
    return ["aws", "ssm", "start-session", "--region", str(deployment.session.region_name), "--target", node]
