"""Finds the launch template of an auto scaling group, and its version.

AWS refuses a group that could never start an instance. ministack does not check these.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from shoal_local_aws.permissions import launches, resources
from shoal_local_aws.permissions.checks import refusal
from shoal_local_aws.seams import ec2, identity, requests, ssm
from shoal_local_aws.service import Record, RefusedError, parameter

_OF_AWS = "/aws/service/"
_IMAGE_ID = "/ami-id"


def install() -> None:
    """Make launch templates store their placement group, and make AWS's public image parameters readable."""
    read, public = ec2.read_template.now, ssm.public_parameter.now

    def parsed(parameters: Record, prefix: str = "LaunchTemplateData") -> Record:
        data = read(parameters, prefix)
        name = parameter(parameters, f"{prefix}.Placement.GroupName")
        return {**data, "Placement": {"GroupName": name}} if name else data

    def of_aws(name: str) -> Record | None:
        found = public(name)
        if found or not (name.startswith(_OF_AWS) and name.endswith(_IMAGE_ID)):
            return found
        arn = f"arn:aws:ssm:{requests.region()}::parameter{name}"
        value = _public_image(name)
        return {"Name": name, "Type": "String", "Value": value, "Version": 1, "LastModifiedDate": 0, "ARN": arn}

    ec2.read_template.put(parsed)
    ssm.public_parameter.put(of_aws)


def data_of(reference: Mapping[str, Any]) -> Record:
    """Return the data of the launch template that `reference` names, with a version: a number, `$Latest` or `$Default`.
    Raises RefusedError if the launch template or its version does not exist."""
    _, template = _template_of(reference)
    version = str(reference.get("Version", "$Default"))
    numbers = {"$Latest": template["LatestVersionNumber"], "$Default": template["DefaultVersionNumber"]}
    number = str(numbers.get(version, version))
    for held in template["Versions"]:
        if str(held["VersionNumber"]) == number:
            data: Record = held["LaunchTemplateData"]
            require_image_id(data.get("ImageId", ""))
            return data
    name = template["LaunchTemplateName"]
    # Belief: Auto Scaling refuses a missing version of a launch template. Check: missing-template-version.
    raise RefusedError("ValidationError", f"The launch template {name} has no version {version}.")


def _template_of(reference: Mapping[str, Any]) -> tuple[str, Record]:
    """Return the id and the record of a launch template."""
    # Rule: A group names a launch template. Source: terraform-aws-modules/terraform-aws-autoscaling#227.
    if not reference:
        raise RefusedError(
            "ValidationError", "Valid requests must contain either launchTemplateId or LaunchTemplateName"
        )
    name = reference.get("LaunchTemplateId") or reference.get("LaunchTemplateName")
    for identifier, held in ec2.launch_templates.items():
        if name in (identifier, held["LaunchTemplateName"]):
            return identifier, held
    # Belief: Auto Scaling refuses an unknown launch template. Check: unknown-launch-template.
    raise RefusedError("ValidationError", f"The specified launch template, {name}, does not exist.")


def require_image_id(image: str) -> None:
    """Raise RefusedError for an image that is named by a parameter (`resolve:ssm:NAME`)."""
    if image.startswith("resolve:"):
        raise RefusedError("ValidationError", f"The embedded AWS does not read the id of an image from {image}.")


def _public_image(name: str) -> str:
    """Return the id of AWS's image for a public parameter, which is computed from the parameter's name. From then on,
    DescribeImages describes the image."""
    identifier = "ami-" + hashlib.sha256(name.encode()).hexdigest()[:17]
    if all(known[0] != identifier for known in ec2.public_images):
        ec2.public_images.append((identifier, name, name, "", "/dev/xvda", "898082745236", "amazon"))
    return identifier


def require_permissions(reference: Mapping[str, Any], subnets: Sequence[str]) -> None:
    """Raise RefusedError if the caller lacks a permission that is required to start an instance from a launch template
    in these subnets. Auto Scaling checks this before it creates or changes a group."""
    identifier, _ = _template_of(reference)
    for action, arn, keys in launches.of_launch(data_of(reference), subnets, identifier):
        context = {**keys, **resources.tags_of(arn, "ec2")}
        # Rule: The caller may launch instances. Source: "Permissions validation for ec2:RunInstances and iam:PassRole".
        if reason := refusal(identity.verified_key.get(), action, arn, context):
            name = reference.get("LaunchTemplateId") or reference.get("LaunchTemplateName")
            raise RefusedError("AccessDenied", f"You are not authorized to use launch template: {name}. {reason}")


def placement_group(data: Mapping[str, Any]) -> str:
    """Return the placement group of a launch template, or an empty string. Raises RefusedError for a missing group."""
    name = str((data.get("Placement") or {}).get("GroupName") or "")
    # Belief: Auto Scaling gives EC2's code for an unknown placement group. Check: unknown-placement-group.
    if name and name not in ec2.placement_groups:
        raise RefusedError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    return name
