"""`shoal ssh`: opens a shell on a node of a deployment, through AWS Systems Manager."""

import os
import shutil

import click

from common.errors import ShoalError
from shoal.cli.command import command, option
from shoal.cli.target import Target

_PLUGIN = "session-manager-plugin"


@command(
    json="",
    help="Open a shell on a node of a deployment, through AWS Systems Manager. The topology must set `network: "
    "{shell: true}`. "
    "NODE is an instance id, or the node's number in the order of `shoal status`, from 1.",
    epilog="Example: shoal ssh starter 1",
)
@click.argument("name", metavar="NAME")
@click.argument("node", metavar="NODE")
@option("--region", metavar="REGION", help="AWS region (default: the region of your AWS configuration, or us-east-1)")
def run(name: str, node: str, region: str | None) -> int:
    words = _to_node(Target(name, region, "ssh"), node)
    if shutil.which(words[0]) is None:
        raise ShoalError(f"the command {words[0]} is not installed; install it and try again")
    os.execvp(words[0], words)  # noqa: S606


def _to_node(target: Target, node: str) -> list[str]:
    from shoal.aws import fleet

    deployment = target.deployment
    instances = [each.instance_id for each in fleet.nodes(deployment)]
    if not instances:
        raise ShoalError(f"'{deployment.name}' has no running GPU node; nodes run only during a training run")
    if node.isdecimal() and 0 < int(node) <= len(instances):
        node = instances[int(node) - 1]
    if node not in instances:
        raise ShoalError(f"'{deployment.name}' has no node {node}; its nodes are {', '.join(instances)}")
    if shutil.which(_PLUGIN) is None:
        raise ShoalError(
            f"{_PLUGIN} is not installed; install it as the Systems Manager user guide describes. The topology "
            f"'{deployment.topology}' must also set `network: {{shell: true}}`"
        )
    return ["aws", "ssm", "start-session", "--region", str(deployment.session.region_name), "--target", node]
