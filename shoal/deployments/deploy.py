"""Execution of `cdk deploy`: continue an interrupted deployment, show progress by resource, and explain failures.

CloudFormation continues even if the CDK is interrupted. Therefore read the stack's state before and after `cdk` runs.
The module `failure` handles failed deployments.
"""

import datetime
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common import names
from common.errors import ShoalError
from common.progress import reporter
from infra import libraries, topology
from infra.policies import BOUNDARY, EXECUTION, TOOLKIT_STACK
from infra.topology import Topology
from shoal.aws import cdk, clusters, fleet, guard, policies, stacks, zones
from shoal.aws.account import Account, connect
from shoal.aws.guard import GuardReport
from shoal.aws.stacks import Event, Stack
from shoal.deployments import failure
from shoal.deployments.removal.ownership import is_empty, why_kept
from shoal.deployments.rules.account import is_prepared

_LAST_LOOKS = 3
_UNKNOWN: Stack = {"StackStatus": "UNKNOWN"}


@dataclass(frozen=True, kw_only=True)
class DeployOptions:
    """Request to deploy a topology under a name for an owner."""

    topology: Topology
    source: str
    """Topology as passed to the CDK app: its name, or the path of its file."""
    deployment: str
    owner: str

    @property
    def region(self) -> str:
        return self.topology.region

    @property
    def stack_name(self) -> str:
        return topology.stack_name(self.deployment)

    @cached_property
    def account(self) -> Account:
        return Account(connect(self.region))

    def context(self, generation: int) -> list[str]:
        """Return the context arguments of `cdk` for the app."""
        boundary, chosen = policies.boundary(self.account), zones.choose(self.account, self.topology, self.deployment)
        values = {
            "topology": self.source,
            "deployment": self.deployment,
            "owner": self.owner,
            "generation": generation,
            **({"permissions_boundary": boundary} if boundary else {}),
            **({"zones": ",".join(chosen)} if chosen else {}),
        }
        return [part for name, value in values.items() for part in ("-c", f"{name}={value}")]


@dataclass(frozen=True, kw_only=True)
class DeployResult:
    """Result of `cdk deploy`: the deployment's outputs, generation and end of life."""

    outputs: dict[str, str]
    changed: bool
    """True if CloudFormation changed anything."""
    generation: int
    ends: datetime.datetime | None
    """End of life, at which the guard deletes the stack. None if no guard exists or its parameters are invalid."""


def require_libraries(wanted: Topology) -> None:
    """Raise ShoalError if an archive that the topology's nodes install is missing. The message contains the command
    that builds the archive."""
    for archive in libraries.missing(wanted, cdk.ROOT):
        raise ShoalError(libraries.describe_missing(archive))


def deploy(request: DeployOptions) -> DeployResult:
    """Create or update the deployment, and wait until it is complete.

    Raises ShoalError if the deployment belongs to a different owner, or if it fails. For a failure, the message names
    the failed resource and AWS's reason. After an interrupt, notes give the state of the stack and the next commands.
    """
    try:
        return _deploy(request)
    except KeyboardInterrupt:
        for line in _interrupted_message(request, _stack_after_interrupt(request)):
            reporter().note(line)
        raise


def _deploy(request: DeployOptions) -> DeployResult:
    cloudformation = request.account.client("cloudformation")
    _refuse_others(request, cloudformation)
    before = stacks.wait_until_deployable(cloudformation, request.stack_name)
    watching = _read_guard(request, before)
    _refuse_during_training(request)
    _refuse_spent_budget(request, watching)
    _refuse_to_lose_data(request, before)
    generation, renewed = _generation(request, before)
    if renewed:
        reporter().note(f"the EMR cluster terminated, so this deployment creates a new one (generation {generation})")
    known = {event["EventId"] for event in stacks.events(cloudformation, request.stack_name)} if before else set()
    view = _StackView(cloudformation, request.stack_name, known)
    folder = Path(tempfile.mkdtemp(prefix="shoal-deploy-"))
    assembly, log = folder / "assembly", folder / "cdk.log"
    try:
        if not is_prepared(request.account):
            reporter().note(
                f"preparing the account for the CDK: Shoal creates the stack {TOOLKIT_STACK} once per region and does "
                f"not delete it; CloudFormation gets only the policies {' and '.join(EXECUTION)}. Without Shoal, `cdk "
                f"deploy` then needs: -c permissions_boundary={policies.arn(request.account, BOUNDARY)}"
            )
            reporter().stage("cdk bootstrap")
            policies.provide(request.account)
            cdk.prepare(
                account=request.account.number(),
                region=request.region,
                execution=policies.execution(request.account),
                environment=_environment(request),
                log=log,
                watch=reporter().tick,
            )
        reporter().stage("synthesise, upload")
        first = stacks.owner_and_topology(before) is None
        # CloudFormation rolls back a failed update. Shoal deletes a failed creation itself, after reading its logs.
        rollback = ["--no-rollback"] if first else []
        cdk.run(
            ["deploy", *request.context(generation), "--require-approval", "never", *rollback],
            environment=_environment(request),
            assembly=assembly,
            log=log,
            # An update changes only some resources, so the total number is known only for a first deployment.
            watch=lambda: view.look(_resources(assembly / f"{request.stack_name}.template.json") if first else 0),
        )
    except ShoalError:
        shutil.rmtree(assembly, ignore_errors=True)  # the log is kept
        why = failure.explain(request.deployment, view.all(), log)
        if why is None:
            raise
        left = stacks.describe(cloudformation, request.stack_name)
        become = failure.clean_up(request.deployment, request.account, left)
        raise ShoalError(f"{why}. {become}") from None
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    after = stacks.watch(cloudformation, request.stack_name)
    if after is None:
        raise ShoalError(f"somebody deleted the stack {request.stack_name} during the deployment; deploy it again")
    shutil.rmtree(folder, ignore_errors=True)
    watching = _read_guard(request, after)
    return DeployResult(
        outputs=stacks.outputs(after),
        changed=bool(view.all()),
        generation=generation,
        ends=watching.ends if watching else None,
    )


class _StackView:
    """Display of the stack's events since the start of the deployment."""

    def __init__(self, cloudformation: Any, name: str, known: set[str]) -> None:
        self._cloudformation, self._name, self._known = cloudformation, name, known
        self._shown = False

    def all(self) -> list[Event]:
        """Return the stack's events since the start of the deployment, oldest first."""
        events = stacks.events(self._cloudformation, self._name)
        return [event for event in reversed(events) if event["EventId"] not in self._known]

    def look(self, total: int) -> None:
        """Show the number of complete resources. `total` is the number of all resources, or 0 if it is unknown."""
        happened = [event for event in self.all() if event.get("PhysicalResourceId") != event["StackId"]]
        if not happened:
            reporter().tick()
            return
        if not self._shown:
            reporter().stage("CloudFormation", total, unit="resource")
            self._shown = True
        last = {event["LogicalResourceId"]: event["ResourceStatus"] for event in happened}
        reporter().say(now=happened[-1]["LogicalResourceId"])
        reporter().at(sum(status.endswith("_COMPLETE") for status in last.values()))
        reporter().tick()


def _refuse_others(request: DeployOptions, cloudformation: Any) -> None:
    stack = stacks.describe(cloudformation, request.stack_name)
    sentence = stacks.name_conflict(
        stack, deployment=request.deployment, owner=request.owner, made_from=request.topology.name
    )
    if sentence:
        raise ShoalError(sentence)


def _refuse_to_lose_data(request: DeployOptions, stack: Stack | None) -> None:
    """Raise ShoalError if the topology now names an existing data bucket, and the bucket that the stack created would
    be deleted with its data."""
    bucket = stacks.outputs(stack).get(names.OUTPUT_DATA_BUCKET) if stack else None
    if stack is None or bucket is None or request.topology.data.bucket in (None, bucket):
        return
    resources = request.account.items(
        "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=stack["StackId"]
    )
    created = {each.get("PhysicalResourceId") for each in resources if each["ResourceType"] == "AWS::S3::Bucket"}
    if bucket in created and not why_kept(request.account, bucket)[0] and not is_empty(request.account, bucket):
        raise ShoalError(
            f"`data: bucket: {request.topology.data.bucket}` would delete the deployment's own bucket s3://{bucket} "
            "with its datasets and models; deploy with `data: {keep: true}` first, or empty the bucket"
        )


def _read_guard(request: DeployOptions, stack: Stack | None) -> GuardReport | None:
    """Return the report on the stack's guard, or None. Invalid settings of a guard are only noted,
    because the deployment restores them."""
    try:
        return guard.read(request.account, request.deployment, stack) if stack else None
    except ShoalError as error:
        reporter().note(str(error))
        return None


def _refuse_spent_budget(request: DeployOptions, watching: GuardReport | None) -> None:
    budget, spent = request.topology.guard.budget, watching.spent if watching else None
    if budget is not None and spent is not None and budget <= spent:
        raise ShoalError(
            f"'{request.deployment}' has already spent ${spent:,.2f}, and `budget` in the topology's `guard` is "
            f"${budget:,.2f}; set a higher `budget`, because the guard would delete the deployment"
        )


def _refuse_during_training(request: DeployOptions) -> None:
    """Raise ShoalError if GPU nodes run, because CloudFormation would move a changed node group to its first zone and
    replace the nodes."""
    running = [
        group["AutoScalingGroupName"]
        for group, tags in fleet.scaling_groups(request.account.client("autoscaling"), request.deployment)
        if tags.get(names.TAG_START) == "train" and group["DesiredCapacity"]
    ]
    if running:
        raise ShoalError(
            f"GPU nodes of '{request.deployment}' are running ({', '.join(running)}), and this deployment could "
            f"replace them; `shoal status {request.deployment}` shows their run, and `shoal stop {request.deployment}` "
            "stops it with a checkpoint. The guard terminates idle nodes"
        )


def _generation(request: DeployOptions, stack: Stack | None) -> tuple[int, bool]:
    """Return the generation to deploy, and whether it is a new generation. It is new if the current EMR cluster has
    terminated."""
    outputs = stacks.outputs(stack) if stack else {}
    present = int(outputs.get(names.OUTPUT_GENERATION, "1"))
    cluster = outputs.get(names.OUTPUT_CLUSTER_ID)
    if cluster is None or request.topology.preprocessing is None:
        return present, False
    state = clusters.status_of(request.account.client("emr"), cluster)["State"]
    return (present + 1, True) if state in clusters.ENDED else (present, False)


def _environment(request: DeployOptions) -> dict[str, str]:
    """Return environment variables for the CDK, in addition to those of this process: the path of its tools, and the
    region."""
    tools = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join([tools, os.environ.get("PATH", os.defpath)]),
        "AWS_REGION": request.region,
        "AWS_DEFAULT_REGION": request.region,
    }


def _resources(template: Path) -> int:
    """Return the number of resources in a template, or 0 while the file is missing or incomplete."""
    try:
        return len(json.loads(template.read_text("utf-8"))["Resources"])
    except (OSError, ValueError, KeyError):
        return 0


def _stack_after_interrupt(request: DeployOptions) -> Stack | None:
    """Return the stack, after waiting until the last request of the interrupted CDK can have taken effect.

    If AWS does not answer, or after another interrupt, return a stack in the state UNKNOWN.
    """
    try:
        cloudformation = request.account.client("cloudformation")
        for _ in range(_LAST_LOOKS):
            if stacks.owner_and_topology(stack := stacks.describe(cloudformation, request.stack_name)):
                break
            time.sleep(1)
        return stack
    except (BotoCoreError, ClientError, KeyboardInterrupt):
        return _UNKNOWN


def _interrupted_message(request: DeployOptions, stack: Stack | None) -> list[str]:
    again = shlex.join(
        ["shoal", "deploy", request.source, "--deployment", request.deployment, "--owner", request.owner]
    )
    if stack is None or stacks.owner_and_topology(stack) is None:
        return [f"nothing was created; to start again: {again}"]
    continues = "may continue" if stack is _UNKNOWN else "continues"
    state = f"CloudFormation {continues} to work on {request.stack_name}"
    if stack["StackStatus"].endswith("_COMPLETE"):
        state = f"the state of {request.stack_name} is {stack['StackStatus']}"
    return [
        state,
        f"to see its state: shoal status {request.deployment}",
        f"to continue: {again}",
        f"to delete it: shoal destroy {request.deployment}",
    ]
