"""Enters the added resource types into ministack's CloudFormation, and makes some of its own as strict as AWS's.

The handlers of added types run on threads of their own, for they call the services over HTTP and wait for what they
made; CloudFormation waits for them. A type that is in no table is refused before anything is created.
"""

from collections.abc import Container
from typing import Any

from ministack.services import ec2, s3
from ministack.services.cloudformation import provisioners, stacks

from embedded.network import user_of_security_group
from embedded.resources import TAGS, TYPES, Created, ResourceType
from embedded.service import Record


class _AllBut(Container[str]):
    """The properties of a type that replace it when they change: all but these."""

    def __init__(self, *kept: str) -> None:
        self._kept = kept

    def __contains__(self, name: object) -> bool:
        return name not in self._kept


def install() -> None:
    """Enter the types into ministack's tables."""
    for name, kind in TYPES.items():
        provisioners._RESOURCE_HANDLERS[name] = _handlers(kind)
        provisioners._REPLACING_PROPERTIES[name] = _AllBut(*kind.changeable)
        if kind.tagged:
            provisioners._STACK_TAG_PROPERTY[name] = (TAGS, "list")
    blocking = stacks._runs_on_worker_thread
    stacks._runs_on_worker_thread = lambda name: name in TYPES or blocking(name)
    _make_others_stricter()


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

    return {"create": create, "update": update, "delete": kind.delete}


def _make_others_stricter() -> None:
    """Types that ministack has, where AWS gives or refuses more."""
    handlers = provisioners._RESOURCE_HANDLERS
    vpc = handlers["AWS::EC2::VPC"]
    create_vpc, update_vpc = vpc["create"], vpc["update"]

    def created(logical: str, properties: Record, stack: str) -> Created:
        identifier, attributes = create_vpc(logical, properties, stack)
        return identifier, {**attributes, "CidrBlock": properties["CidrBlock"]}

    def updated(*arguments: Any) -> Created:
        identifier, attributes = update_vpc(*arguments)
        return identifier, {**attributes, "CidrBlock": ec2._vpcs[identifier]["CidrBlock"]}

    vpc.update(create=created, update=updated)
    handlers["AWS::S3::Bucket"]["delete"] = _delete_bucket
    handlers["AWS::EC2::SecurityGroup"]["delete"] = _delete_security_group
    _tag_buckets(handlers["AWS::S3::Bucket"])


def _tag_buckets(handlers: Record) -> None:
    """Put a bucket's tags, the stack's included, where GetBucketTagging finds them."""
    provisioners._STACK_TAG_PROPERTY["AWS::S3::Bucket"] = (TAGS, "list")
    create, update = handlers["create"], handlers["update"]

    def created(logical: str, properties: Record, stack: str) -> Created:
        name, attributes = create(logical, properties, stack)
        s3._bucket_tags[name] = provisioners._tag_map(properties.get(TAGS))
        return name, attributes

    def updated(identifier: str, old: Record, new: Record, stack: str) -> Created:
        name, attributes = update(identifier, old, new, stack)
        s3._bucket_tags[name] = provisioners._tag_map(new.get(TAGS))
        return name, attributes

    handlers.update(create=created, update=updated)


def _delete_bucket(identifier: str, properties: Record) -> None:
    del properties
    status, _headers, body = s3._delete_bucket(identifier)
    if status >= 300 and status != 404:
        reason = "is not empty" if b"BucketNotEmpty" in body else "cannot be deleted"
        raise ValueError(f"The bucket you tried to delete {reason}: {identifier} (Service: S3, Status Code: {status})")


def _delete_security_group(identifier: str, properties: Record) -> None:
    del properties
    user = user_of_security_group(identifier)
    if user is not None:
        raise ValueError(f"resource {identifier} has a dependent object: {user} (Service: Ec2, Status Code: 400)")
    ec2._security_groups.pop(identifier, None)
    ec2._tags.pop(identifier, None)
