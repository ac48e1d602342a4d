"""Rules for the account: its AWS plan (free or paid), permission to start GPU nodes, the deployment's name, and the
CDK's bootstrap stack.

An existing deployment of the same name is a problem only if it has a different owner or topology.
"""

import re
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.aws.account import Account
from bootstrap.aws.stacks import describe, name_conflict
from bootstrap.lifecycle.rules import PreflightContext
from infra import catalog, topology
from infra.policies import EXECUTION, QUALIFIER, TOOLKIT_STACK
from infra.sizing import ROOT_DEVICE

_PLANS_REGION = "us-east-1"
"""Only region with an endpoint of the API for account plans."""
_CDK_VERSION = f"/cdk-bootstrap/{QUALIFIER}/version"
"""SSM parameter in which the CDK's bootstrap stack stores its version."""
_DENIED = re.compile(r"not authorized to perform: ([a-z0-9-]+:\w+)")
"""Pattern of the action that AWS denied. The action can belong to a service other than EC2."""


def free_plan(context: PreflightContext) -> Iterator[str]:
    """Yield a message if the account has AWS's Free plan, with which EC2 starts no instance type of the catalog."""
    state = context.account.client("freetier", _PLANS_REGION).get_account_plan_state()
    if state["accountPlanType"] == "FREE":
        yield (
            "the account has AWS's Free plan, with which EC2 starts no "
            f"{' and no '.join(topology.instance_types(context.topology))}; upgrade to the Paid plan first: "
            f"aws freetier upgrade-account-plan --account-plan-type PAID --region {_PLANS_REGION}"
        )


def may_not_start(context: PreflightContext) -> Iterator[str]:
    """Yield a message for each instance type of a node group that EC2 would not start for this user, according to a dry
    run."""
    for group, kind in ((each, kind) for each in context.topology.training for kind in each.types):
        if catalog.find(kind).retired:
            continue
        request: dict[str, Any] = {
            "DryRun": True,
            "ImageId": group.image or f"resolve:ssm:{catalog.image_of(kind).parameter}",
            "InstanceType": kind,
            "MinCount": 1,
            "MaxCount": 1,
        }
        if group.market != "on-demand":
            request["InstanceMarketOptions"] = {"MarketType": group.market}
        if group.reservation:
            target = {"CapacityReservationTarget": {"CapacityReservationId": group.reservation}}
            request["CapacityReservationSpecification"] = target
            request["Placement"] = {"AvailabilityZone": context.topology.zone}
        if context.topology.network.subnet:
            request["SubnetId"] = context.topology.network.subnet
        try:
            context.account.client("ec2").run_instances(**request)
        except ClientError as error:
            code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
            if code == "DryRunOperation":
                continue
            denied = _DENIED.search(message)
            if code == "UnauthorizedOperation" and (denied is None or denied[1] == "ec2:RunInstances"):
                yield (
                    f"{kind} ({group.name}): your credentials lack ec2:RunInstances to start it; "
                    "ask your account's administrator for that permission."
                )
            elif code.startswith(("Invalid", "Unsupported")):
                yield f"{kind} ({group.name}): EC2 refuses to start it: {message}"
            else:
                raise


def root_device_differs(context: PreflightContext) -> Iterator[str]:
    """Yield a message for each image of a node group with a root device other than the one that the launch template
    sizes.

    EC2 accepts such an image, but nodes would boot from a small root volume and have a second, unused volume.
    """
    for group in context.topology.training:
        if group.image is None:
            continue
        by_id = [{"Name": "image-id", "Values": [group.image]}]
        # `may_not_start` reports an image that does not exist
        for image in context.account.client("ec2").describe_images(Filters=by_id)["Images"]:
            if (device := image.get("RootDeviceName", ROOT_DEVICE)) != ROOT_DEVICE:
                yield (
                    f"training, {group.name}, image: {group.image} has the root device {device}, not Amazon Linux's "
                    f"{ROOT_DEVICE}; use another image."
                )


def name_taken(context: PreflightContext) -> Iterator[str]:
    """Yield a message if a deployment of this name exists and has a different owner or topology."""
    stack = describe(context.account.client("cloudformation"), topology.stack_name(context.deployment))
    sentence = name_conflict(stack, deployment=context.deployment, owner=context.owner, made_from=context.topology.name)
    if sentence:
        yield sentence


def not_prepared(context: PreflightContext) -> Iterator[str]:
    """Yield a message if `cdk bootstrap` has not run for Shoal in this account and region. `shoal deploy` will then run
    it."""
    if not is_prepared(context.account):
        yield (
            f"the account is not yet prepared for Shoal in {context.topology.region}; `shoal deploy` first runs `cdk "
            f"bootstrap` (the stack {TOOLKIT_STACK} with a bucket and roles, which is kept), for which you need "
            "permission to create roles. CloudFormation then gets only the permissions that Shoal's stacks need, from "
            f"the policies {' and '.join(EXECUTION)} (`python -m tools.permissions NAME` prints a policy)."
        )


def is_prepared(account: Account) -> bool:
    """Return whether `cdk bootstrap` has run with Shoal's qualifier in this account and region."""
    return bool(account.client("ssm").get_parameters(Names=[_CDK_VERSION])["Parameters"])
