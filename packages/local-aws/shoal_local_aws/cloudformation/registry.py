"""Adds resource types to ministack's CloudFormation, and makes some of ministack's types as strict as those of AWS.

The handlers of added types run on their own threads, because they call the services over HTTP and wait for the result.
A template with an unknown type is refused before any resource is created.
"""

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from shoal_local_aws.cloudformation import ec2_types, emr_types
from shoal_local_aws.cloudformation.resource_type import TAGS, Created, ResourceType
from shoal_local_aws.seams import cloudformation, ec2, identity, storage
from shoal_local_aws.service import Record

TYPES: Mapping[str, ResourceType] = {**ec2_types.TYPES, **emr_types.TYPES}


def install() -> None:
    """Add the resource types to ministack's tables."""
    for name, kind in TYPES.items():
        cloudformation.types[name] = _handlers(kind)
        if kind.tagged:
            cloudformation.tag_type(name, TAGS)
    blocks, replacing = cloudformation.runs_on_thread.now, cloudformation.replaces.now
    cloudformation.runs_on_thread.put(lambda name: name in TYPES or blocks(name))

    def replaces(name: str, old: Record, new: Record) -> bool:
        if (kind := TYPES.get(name)) is None:
            return replacing(name, old, new)
        return not {each for each in {*old, *new} if old.get(each) != new.get(each)} <= {*kind.changeable}

    cloudformation.replaces.put(replaces)
    cloudformation.check_template.wrap(_naming_itself)
    _make_types_stricter()
    cloudformation.conditions.wrap(_joining)


def _naming_itself(check: Callable[..., None]) -> Callable[..., None]:
    """Make the refusal of an unknown type say that the emulator lacks it, because AWS may have the type."""

    def checked(*template: Any, **more: Any) -> None:
        try:
            check(*template, **more)
        except ValueError as error:
            _, unknown, types = str(error).partition("Unrecognized resource types: ")
            if unknown:
                raise ValueError(
                    f"The embedded AWS does not have the resource types {types}, which AWS may have"
                ) from None
            raise

    return checked


def _joining(evaluate: Callable[[Record, Record], dict[str, bool]]) -> Callable[[Record, Record], dict[str, bool]]:
    """Make conditions evaluate `Fn::Join` of list parameters. ministack alone would always treat the result as true."""

    def joined(value: Any, parameters: Record) -> Any:
        if isinstance(value, list):
            return [joined(each, parameters) for each in value]
        if not isinstance(value, dict):
            return value
        separator, of = value.get("Fn::Join") or ("", None)
        if isinstance(of, dict) and of.get("Ref") in parameters:
            return str(parameters[of["Ref"]]["Value"]).replace(",", separator)
        return {name: joined(each, parameters) for name, each in value.items()}

    def evaluated(template: Record, parameters: Record) -> dict[str, bool]:
        asked = joined(template.get("Conditions", {}), parameters)
        return evaluate({**template, "Conditions": asked}, parameters)

    return evaluated


def _handlers(kind: ResourceType) -> Record:
    attributes_of: dict[str, dict[str, str]] = {}

    def create(logical: str, properties: Record, stack: str) -> Created:
        identifier, attributes = kind.create(logical, properties, stack)
        attributes_of[identifier] = attributes
        return identifier, attributes

    def update(identifier: str, old: Record, new: Record, stack: str) -> Created:
        del stack
        if kind.change is not None:
            kind.change(identifier, old, new)
        return identifier, attributes_of[identifier]

    def delete(identifier: str, properties: Record) -> None:
        try:
            kind.delete(identifier, properties)
        except ClientError as error:
            if error.response["Error"]["Code"] not in kind.gone:
                raise

    return {"create": create, "update": update, "delete": delete}


def _make_types_stricter() -> None:
    """Change those of ministack's types for which AWS returns more attributes, stores more fields or refuses more
    requests."""
    _complete("AWS::EC2::VPC", lambda name, _: {"CidrBlock": ec2.vpcs[name]["CidrBlock"]})
    _complete("AWS::IAM::Role", _bind_role, _require_boundary)
    _complete("AWS::S3::Bucket", _keep_tags)
    cloudformation.tag_type("AWS::S3::Bucket", TAGS)
    cloudformation.handlers_of("AWS::S3::Bucket")["delete"] = _delete_bucket
    # Belief: Names of log groups have the stack and the logical id. No check: the acceptance run deploys such groups.
    _complete("AWS::Logs::LogGroup", name_property="LogGroupName")


def _complete(
    kind: str,
    after: Callable[[str, Record], dict[str, str]] = lambda _name, _properties: {},
    before: Callable[[Record], None] = lambda _properties: None,
    name_property: str = "",
) -> None:
    """Extend the creation and update of a resource type.

    `before` is called first, with the resource's properties. `after` is called last, with the resource's name and
    properties, and returns additional attributes. `name_property` is the property that has a generated name by default.
    """
    handlers = cloudformation.handlers_of(kind)
    create, update = handlers["create"], handlers["update"]

    def named(name: str, properties: Record) -> Record:
        return {name_property: name, **properties} if name_property else properties

    def created(logical: str, properties: Record, stack: str) -> Created:
        before(properties)
        name, attributes = create(logical, named(cloudformation.generated_name(stack, logical), properties), stack)
        return name, {**attributes, **after(name, properties)}

    def updated(identifier: str, old: Record, new: Record, *rest: Any) -> Created:
        before(new)
        name, attributes = update(identifier, named(identifier, old), named(identifier, new), *rest)
        return name, {**attributes, **after(name, new)}

    handlers.update(create=created, update=updated)


def _require_boundary(properties: Record) -> None:
    boundary = properties.get("PermissionsBoundary")
    # Belief: IAM refuses a boundary that does not exist. No check: a wrong belief would leave a role.
    if boundary and not identity.policy_exists(boundary):
        reason = f"Scope ARN: {boundary} does not exist or is not attachable."
        raise ValueError(f"{reason} (Service: Iam, Status Code: 404)")


def _bind_role(name: str, properties: Record) -> dict[str, str]:
    """Set the permissions boundary of a role."""
    identity.roles[name]["PermissionsBoundary"] = properties.get("PermissionsBoundary")
    return {}


def _keep_tags(bucket: str, properties: Record) -> dict[str, str]:
    """Store a bucket's tags, including those of the stack, for GetBucketTagging."""
    storage.bucket_tags[bucket] = {str(tag["Key"]): str(tag["Value"]) for tag in properties.get(TAGS) or []}
    return {}


def _delete_bucket(identifier: str, properties: Record) -> None:
    del properties
    status, _headers, body = storage.delete_bucket.now(identifier)
    # Rule: A bucket with objects makes a deletion fail. Source: F5Networks/f5-aws-cloudformation#52; aws/aws-cdk#21776.
    if status >= 300 and status != 404:
        reason = "is not empty" if b"BucketNotEmpty" in body else "is in use"
        raise ValueError(f"The bucket you tried to delete {reason}: {identifier} (Service: S3, Status Code: {status})")
