"""`shoal deploy`: creates or updates a deployment, with a plan before and a summary after."""

import os
import sys
from typing import TYPE_CHECKING

import click

from common.errors import UsageError
from shoal.aws import cdk
from shoal.cli.command import command, option
from shoal.cli.figures import utc_time
from shoal.cli.output import Result, confirm, print_parts, say
from shoal.cli.target import check_name
from shoal.cli.verbs.plan import plan_content, plan_parts
from shoal.progress import Bars

if TYPE_CHECKING:
    from shoal.deployments.deploy import DeployOptions, DeployResult
    from shoal.deployments.plan import DeploymentPlan

_REFUSED = 1


@command(
    help="Create a deployment of a topology on AWS, or update an existing deployment. The command shows the "
    "price, checks "
    "that the topology can be deployed, asks for confirmation, and runs the CDK. A deployment that already "
    "matches its topology is not changed. The same command continues an interrupted deployment, and replaces an "
    "EMR cluster that has terminated.",
    epilog="Example: shoal plan starter, then shoal deploy starter",
)
@click.argument(
    "source",
    metavar="NAME_OR_FILE",
    help="name of a topology in topologies/, or your own YAML file",
)
@option("--deployment", metavar="NAME", help="name of the deployment (default: the topology's name)")
@option("--owner", metavar="NAME", help="owner of the deployment (default: the topology's owner, or you)")
@option("--yes", is_flag=True, help="deploy without asking for confirmation")
def run(source: str, deployment: str | None, owner: str | None, yes: bool) -> Result:
    from infra import caller, topology
    from shoal.deployments import deploy, plan, preflight

    chosen = topology.load(source, cdk.TOPOLOGIES)
    request = deploy.DeployOptions(
        topology=chosen,
        source=topology.absolute(source),
        deployment=check_name(deployment or chosen.name),
        owner=caller.owner_of(chosen, owner),
    )
    if not (yes or sys.stdin.isatty()):
        raise UsageError(
            "there is no terminal to ask for confirmation; check with `shoal plan`, then deploy with --yes"
        )
    deploy.require_libraries(chosen)
    deployment_plan = plan.make_plan(
        chosen,
        deployment=request.deployment,
        session=preflight.session(chosen.region),
        endpoint=os.environ.get("AWS_ENDPOINT_URL"),
    )
    planned = plan_content(deployment_plan, deployment=request.deployment)
    print_parts(plan_parts(deployment_plan, planned), planned, sys.stderr)
    say()
    refused = {"plan": planned, "deployed": False}
    if deployment_plan.refused:
        return Result(refused, ["nothing was deployed"], _REFUSED)
    if not yes and not confirm("Deploy?"):
        return Result(refused, ["nothing was deployed"], _REFUSED)
    with Bars(unit="resource"):
        done = deploy.deploy(request)
    done_content = {
        "plan": planned,
        "deployed": True,
        "deployment": request.deployment,
        "stack": request.stack_name,
        "region": request.region,
        "owner": request.owner,
        "changed": done.changed,
        "generation": done.generation,
        "outputs": done.outputs,
        "ends": done.ends,
    }
    return Result(done_content, [_rows(deployment_plan, request, done)])


def _rows(plan: "DeploymentPlan", request: "DeployOptions", done: "DeployResult") -> list[tuple[str, str]]:
    name, least = request.deployment, "at least " if plan.unknown else ""
    # A deployment without preprocessing has no dataset that `shoal train` could use by default.
    on_node = plan.topology.preprocesses_on_node
    data = "" if plan.topology.preprocessing else " --input FILE" if on_node else " --data DATASET"
    next_one = [
        *([f"shoal preprocess --deployment {name} --input FILE"] if plan.topology.preprocessing else []),
        *(
            [f"shoal train --deployment {name} --output DIR{data}"]
            if plan.topology.training or plan.topology.managed
            else []
        ),
        f"shoal destroy {name}",
    ]
    return [
        ("deployment", f"{name} (stack {request.stack_name}, {request.region})"),
        ("", "complete" if done.changed else "unchanged, because it already matched the topology"),
        *sorted(done.outputs.items()),
        ("costs now", f"{least}${plan.resting:.2f} per hour; {least}${plan.hourly:.2f} while everything runs"),
        ("end of life", f"{utc_time(done.ends)}; to extend: shoal extend {name} --hours H"),
        *(("next" if index == 0 else "", command) for index, command in enumerate(next_one)),
    ]
