"""Creates roles and permissions that several constructs need, and acknowledges findings of the template rules.

AWS Solutions' rules identify a finding by its full id, which contains the resource. Acknowledge a finding where the
resource is defined.
"""

from collections.abc import Mapping, Sequence

from aws_cdk import Acknowledgment, CfnResource, Stack, Token, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

from infra import addresses

READ = ("s3:GetObject",)
WRITE = ("s3:PutObject", "s3:AbortMultipartUpload")
REPLACE = (*READ, *WRITE, "s3:DeleteObject")
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


def accept_policy(role: iam.Role, policy: str, reason: str) -> None:
    """Acknowledge that the role has this AWS managed policy."""
    accept(role, f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{policy}]", reason)


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


def same_account_principal(stack: Stack, principal: str, *, service: str, name: str) -> iam.ServicePrincipal:
    """A service that may assume a role only for resources of this account: `name` of `service`.

    Use it only for services that send the source account and ARN, such as EMR and flow logs. EC2 and Lambda are not
    documented to send them, so with these conditions they might not be able to assume the role.
    """
    return iam.ServicePrincipal(
        principal,
        conditions={
            "StringEquals": {"aws:SourceAccount": stack.account},
            "ArnLike": {"aws:SourceArn": f"arn:{stack.partition}:{service}:{stack.region}:{stack.account}:{name}"},
        },
    )


def node_role(scope: Construct, *, shell: bool) -> iam.Role:
    """Create the role of a node, which allows nothing; with `shell` it lets Systems Manager open a shell on the node.

    AWS's policy for that also allows reading every parameter of the account, so the role denies it.
    """
    role = iam.Role(scope, "NodeRole", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    if not shell:
        return role
    policy = "AmazonSSMManagedInstanceCore"
    role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(policy))
    accept_policy(role, policy, "AWS decides what the agent of Systems Manager needs; the agent replaces SSH.")
    role.add_to_policy(
        iam.PolicyStatement(effect=iam.Effect.DENY, actions=["ssm:GetParameter", "ssm:GetParameters"], resources=["*"])
    )
    return role


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


def allow_inputs(role: iam.Role, named: Sequence[str]) -> None:
    """Allow reading the objects of the topology's inputs and listing their names, but no other names of those buckets.

    So S3 answers 403 instead of 404 for a missing object. Only Shoal's readers read these buckets, not Hadoop.
    """
    stack = Stack.of(role)
    for address in named:
        name, key = addresses.split(address)
        bucket = stack.format_arn(service="s3", region="", account="", resource=name)
        keys = addresses.patterns(address)
        allow(role, ["s3:ListBucket"], [bucket], {"StringLike": {"s3:prefix": keys}} if key else None)
        allow(role, READ, [f"{bucket}/{each}" for each in keys])
        reason = "The names of objects are not known beforehand; the topology names what is above them."
        accept_pattern(role, f"arn:<AWS::Partition>:s3:::{name}/{keys[-1]}", reason)
