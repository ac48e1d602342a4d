"""Grants permissions to roles, and acknowledges findings of the template rules (cdk-nag's AWS Solutions, and checkov).

The id of an AWS Solutions finding contains the resource. So acknowledge a finding where the resource is defined.
"""

from collections.abc import Mapping, Sequence

from aws_cdk import Acknowledgment, CfnResource, Stack, Token, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

READ = ("s3:GetObject",)
LIST = ("s3:ListBucket",)
UNEXERCISED = "shoal:unexercised"
"""Metadata key of a role's policy under which `explain` stores its reasons."""


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
    """Acknowledge a resource pattern in the role's default policy."""
    accept(role.node.find_child("DefaultPolicy"), f"IAM5[Resource::{resource}]", reason)


def region_in_rule(stack: Stack) -> str:
    """Return the stack's region as it is written in finding ids: `<AWS::Region>` for a stack without a fixed region."""
    return "<AWS::Region>" if Token.is_unresolved(stack.region) else stack.region


def explain(holder: iam.Role | iam.Policy, grants: Sequence[str], reason: str) -> None:
    """Record why a role (by its default policy) or a policy has `grants` that no emulated deployment uses.

    `grants` are actions or resource patterns. The tests fail for a grant that is neither used nor explained.
    """
    policy = (holder.node.try_find_child("DefaultPolicy") or holder).node.default_child
    assert isinstance(policy, CfnResource)
    policy.add_metadata(UNEXERCISED, {**(policy.get_metadata(UNEXERCISED) or {}), **dict.fromkeys(grants, reason)})


def allow(
    role: iam.Role, actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, object] | None = None
) -> None:
    """Allow the role these actions on these resources, under the policy statement's `conditions`."""
    role.add_to_policy(iam.PolicyStatement(actions=[*actions], resources=[*resources], conditions=conditions))


def allow_objects(
    role: iam.Role,
    bucket: s3.IBucket,
    actions: Sequence[str],
    *,
    under: Sequence[str] = ("",),
    listing: Sequence[str] = LIST,
) -> None:
    """Allow the role these actions on objects below the prefixes `under`, and listing of the whole bucket.

    Do not limit listing to the prefixes. S3 would then answer 403 instead of 404 for a missing object, and Hadoop would
    fail.
    """
    allow(role, listing, [bucket.bucket_arn])
    allow(role, actions, [bucket.arn_for_objects(f"{prefix}*") for prefix in under])
    for prefix in under:
        accept_keys(role, bucket, f"{prefix}*")


def accept_keys(role: iam.Role, bucket: s3.IBucket, keys: str) -> None:
    """Acknowledge that the role has permissions for all objects of the bucket that match the pattern `keys`."""
    resource = bucket.node.default_child
    name = f"arn:<AWS::Partition>:s3:::{bucket.bucket_name}"
    if isinstance(resource, s3.CfnBucket):
        name = f"<{Stack.of(bucket).get_logical_id(resource)}.Arn>"
    reason = "Object names are not known in advance. The bucket or the prefix belongs to the deployment."
    accept_pattern(role, f"{name}/{keys}", reason)
