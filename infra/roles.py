"""Creates the roles of nodes, and permissions that several constructs need."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct
from shoal_guard.grants import READ, accept, accept_pattern, allow

from infra import addresses

WRITE = ("s3:PutObject", "s3:AbortMultipartUpload")
REPLACE = (*READ, *WRITE, "s3:DeleteObject")


def accept_policy(role: iam.Role, policy: str, reason: str) -> None:
    """Acknowledge that the role has this AWS managed policy."""
    accept(role, f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{policy}]", reason)


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
