"""Rules for the account: its AWS plan (free or paid), the images of GPU nodes, the deployment's name, and the CDK's
bootstrap stack.

An existing deployment of the same name is a problem only if it has a different owner or topology.
"""

from collections.abc import Iterator
from typing import Any

from bootstrap.aws.account import Account
from bootstrap.aws.stacks import describe, name_conflict
from bootstrap.lifecycle.rules import PreflightContext
from infra import catalog, parts, topology
from infra.policies import EXECUTION, QUALIFIER, TOOLKIT_STACK
from infra.sizing import GPU_ROOT_GIB, ROOT_DEVICE

_PLANS_REGION = "us-east-1"
"""Only region with an endpoint of the API for account plans."""
_CDK_VERSION = f"/cdk-bootstrap/{QUALIFIER}/version"
"""SSM parameter in which the CDK's bootstrap stack stores its version."""


def free_plan(context: PreflightContext) -> Iterator[str]:
    """Yield a message if the account has AWS's Free plan, with which EC2 starts no instance type of the catalog."""
    state = context.account.client("freetier", _PLANS_REGION).get_account_plan_state()
    if state["accountPlanType"] == "FREE":
        yield (
            "the account has AWS's Free plan, with which EC2 starts no "
            f"{' and no '.join(topology.instance_types(context.topology))}; upgrade to the Paid plan first: "
            f"aws freetier upgrade-account-plan --account-plan-type PAID --region {_PLANS_REGION}"
        )


def image_unusable(context: PreflightContext) -> Iterator[str]:
    """Yield a message for each image of a node group that does not exist, or that does not fit the root device of the
    launch template.

    EC2 accepts another root device, but nodes would boot from a small root volume and have a second, unused volume. It
    refuses a volume that is smaller than its snapshot (zalando-incubator/kubernetes-on-aws#3817).
    """
    for group in context.topology.training:
        name, wanted = _image(group)
        images = context.account.client("ec2").describe_images(**wanted)["Images"]
        if not images:
            yield (
                f"training, {group.name}, image: {name} does not exist in {context.topology.region} for your "
                "credentials; write an image of this region that your account may use."
            )
        for image in sorted(images, key=lambda each: str(each.get("Name")))[-1:]:
            if (device := image.get("RootDeviceName", ROOT_DEVICE)) != ROOT_DEVICE:
                yield (
                    f"training, {group.name}, image: {name} has the root device {device}, not Amazon Linux's "
                    f"{ROOT_DEVICE}; use another image."
                )
            disks = {each["DeviceName"]: each.get("Ebs", {}) for each in image.get("BlockDeviceMappings", ())}
            if (size := disks.get(device, {}).get("VolumeSize", 0)) > GPU_ROOT_GIB:
                yield (
                    f"training, {group.name}, image: {name} needs a volume of {size} GiB, and the nodes' volume has "
                    f"{GPU_ROOT_GIB} GiB; use another image."
                )


def _image(group: parts.NodeGroup) -> tuple[str, dict[str, Any]]:
    """Return the id or the name of a group's image, and the arguments of DescribeImages that find it. The name of AWS's
    image ends with the date of the build."""
    if group.image:
        return group.image, {"Filters": [{"Name": "image-id", "Values": [group.image]}]}
    title = catalog.image_of(group.instance_type).title
    return title, {"Owners": ["amazon"], "Filters": [{"Name": "name", "Values": [f"{title} ????????"]}]}


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
