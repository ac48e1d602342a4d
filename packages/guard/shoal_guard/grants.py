"""Permissions of roles, and acknowledgements of what the template rules find in them.

AWS Solutions' rules identify a finding by its full id, which contains the resource. Acknowledge a finding where the
resource is defined.
"""

from collections.abc import Mapping, Sequence

from aws_cdk import Acknowledgment, CfnResource, Stack, Token, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

READ = ("s3:GetObject",)
LIST = ("s3:ListBucket",)
UNEXERCISED = "shoal:unexercised"
"""The metadata of a role's policy in which `explain` keeps its reasons."""


def accept(where: IConstruct, rule: str, reason: str) -> None:
    """Acknowledge a finding of AWS Solutions (`S1`, `IAM5[Resource::*]`) or of checkov (`CKV_AWS_18`)."""
    if rule.startswith("CKV_"):
        resource = where.node.default_child
        assert isinstance(resource, CfnResource)
        held = resource.get_metadata("checkov") or {"skip": []}
        resource.add_metadata("checkov", {"skip": [*held["skip"], {"id": rule, "comment": reason}]})
        return
    Validations.of(where).acknowledge(Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason))


def accept_pattern(role: iam.Role, resource: str, reason: str) -> None:
    """Acknowledge that the role's own policy has a pattern of resources."""
    accept(role.node.find_child("DefaultPolicy"), f"IAM5[Resource::{resource}]", reason)


def region_in_rule(stack: Stack) -> str:
    """The stack's region as the id of a finding has it, also of a stack for any region."""
    return "<AWS::Region>" if Token.is_unresolved(stack.region) else stack.region


def explain(role: iam.Role, grants: Sequence[str], reason: str) -> None:
    """Say why the role has grants that no call of an emulated deployment needs: actions, or patterns of resources.

    A grant that no call needs and no reason explains fails the tests.
    """
    policy = role.node.find_child("DefaultPolicy").node.default_child
    assert isinstance(policy, CfnResource)
    policy.add_metadata(UNEXERCISED, {**(policy.get_metadata(UNEXERCISED) or {}), **dict.fromkeys(grants, reason)})


def allow(
    role: iam.Role, actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, object] | None = None
) -> None:
    """Allow the role these actions on these resources; `conditions` are those of the policy's statement."""
    role.add_to_policy(iam.PolicyStatement(actions=[*actions], resources=[*resources], conditions=conditions))


def allow_objects(
    role: iam.Role,
    bucket: s3.IBucket,
    actions: Sequence[str],
    *,
    under: Sequence[str] = ("",),
    listing: Sequence[str] = LIST,
) -> None:
    """Allow the actions on objects below these prefixes, and listing of the bucket.

    Do not limit listing to the prefixes: S3 would then answer 403 instead of 404 for a missing object, and Hadoop would
    fail.
    """
    allow(role, listing, [bucket.bucket_arn])
    allow(role, actions, [bucket.arn_for_objects(f"{prefix}*") for prefix in under])
    for prefix in under:
        accept_keys(role, bucket, f"{prefix}*")


def accept_keys(role: iam.Role, bucket: s3.IBucket, keys: str) -> None:
    """Acknowledge that the role is allowed something on objects whose keys are like this."""
    resource = bucket.node.default_child
    name = f"arn:<AWS::Partition>:s3:::{bucket.bucket_name}"
    if isinstance(resource, s3.CfnBucket):
        name = f"<{Stack.of(bucket).get_logical_id(resource)}.Arn>"
    reason = "The names of objects are not known beforehand; the bucket, or the prefix, belongs to the deployment."
    accept_pattern(role, f"{name}/{keys}", reason)
