"""Lists the permissions that EC2 requires for a launch: one for each resource that the launch uses or creates."""

from collections.abc import Iterator, Sequence

from shoal_local_aws.permissions import identities
from shoal_local_aws.seams import ec2, requests
from shoal_local_aws.seams.lookup import Record

Permission = tuple[str, str, Record]
"""A permission that a request needs: action, resource and condition keys."""
# Rule: A launch needs these permissions. Source: "Actions, resources, and condition keys for Amazon EC2".
_RUN = "ec2:RunInstances"


def of_launch(data: Record, subnets: Sequence[str], template: str = "") -> Iterator[Permission]:
    """Yield the permissions to start an instance in one of the subnets. `template` is the launch template's id, if the
    launch names one."""
    region, account = requests.region(), requests.account()
    place, image = f"arn:aws:ec2:{region}:{account}", str(data.get("ImageId", ""))
    owner = account if image in ec2.images else "amazon"  # the emulator has no images of other accounts
    yield _RUN, f"arn:aws:ec2:{region}::image/{image}", {"ec2:Owner": owner}
    given = data.get("IamInstanceProfile") or {}
    profile = str(given.get("Arn") or given.get("Name") or "").rpartition("/")[2]
    keys = {"ec2:InstanceProfile": f"arn:aws:iam::{account}:instance-profile/{profile}"} if profile else {}
    for kind, own in (("instance", keys), ("network-interface", {}), ("volume", {})):
        arn, tags = f"{place}:{kind}/*", specified_tags(data, kind)
        wanted = {f"aws:RequestTag/{tag['Key']}": tag["Value"] for tag in tags}
        yield _RUN, arn, {**own, **wanted}
        if tags:
            yield "ec2:CreateTags", arn, {"ec2:CreateAction": "RunInstances", **wanted}
    groups = [name for each in data.get("NetworkInterfaces") or () for name in each.get("Groups") or ()]
    group = (data.get("Placement") or {}).get("GroupName")
    for kind, names in (
        ("launch-template", [template]),
        ("placement-group", [group]),
        ("security-group", [*(data.get("SecurityGroupIds") or ()), *groups]),
        ("subnet", subnets),
    ):
        yield from ((_RUN, f"{place}:{kind}/{name}", {}) for name in names if name)
    if role := identities.role_of_profile(profile):
        yield "iam:PassRole", f"arn:aws:iam::{account}:role/{role}", passed_to("ec2.amazonaws.com")


def passed_to(service: str) -> Record:
    """Return the condition key for the service to which a role is passed, if AWS documents the key's value."""
    # Belief: For flow logs, the key is not the principal of their service. No check: callers do not see the key.
    return {"iam:PassedToService": service} if service else {}


def specified_tags(data: Record, kind: str) -> list[Record]:
    """Return the tags that a launch template specifies for a new resource, such as `instance` or `volume`."""
    return [
        {"Key": tag["Key"], "Value": tag["Value"]}
        for specification in data.get("TagSpecifications") or []
        if specification.get("ResourceType") == kind
        for tag in specification["Tags"]
    ]
