"""What the roles of this stack share, and how a finding of lint that is intended is acknowledged.

AWS Solutions' rules identify a finding by its full id, with the resource in it. An acknowledgement stands where the
choice is made.
"""

from collections.abc import Sequence

from aws_cdk import Acknowledgment, CfnResource, Stack, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct, IConstruct

READ = ("s3:GetObject",)
WRITE = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
REPLACE = (*READ, *WRITE, "s3:DeleteObject")


def accept(where: IConstruct, rule: str, reason: str) -> None:
    """Acknowledge a finding: of AWS Solutions' rules (`S1`, `IAM5[Resource::*]`) or of checkov's (`CKV_AWS_18`)."""
    if rule.startswith("CKV_"):
        resource = where.node.default_child
        assert isinstance(resource, CfnResource)
        held = resource.get_metadata("checkov") or {"skip": []}
        resource.add_metadata("checkov", {"skip": [*held["skip"], {"id": rule, "comment": reason}]})
        return
    Validations.of(where).acknowledge(Acknowledgment(id=f"AwsSolutions::AwsSolutions-{rule}", reason=reason))


def accept_policy(role: iam.Role, policy: str, reason: str) -> None:
    """Acknowledge that the role has this policy of AWS's."""
    accept(role, f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{policy}]", reason)


def same_account_principal(stack: Stack, principal: str, *, service: str, name: str) -> iam.ServicePrincipal:
    """A service that may take a role for the sake of this account's resources alone, `name` of its `service`.

    Only for services that say for whose sake they ask, as EMR and flow logs do. EC2 and Lambda are not documented to: a
    role's own account alone can give it to them, and with these conditions it might not be taken at all.
    """
    return iam.ServicePrincipal(
        principal,
        conditions={
            "StringEquals": {"aws:SourceAccount": stack.account},
            "ArnLike": {"aws:SourceArn": f"arn:{stack.partition}:{service}:{stack.region}:{stack.account}:{name}"},
        },
    )


def node_role(scope: Construct, construct_id: str) -> iam.Role:
    """The role of a machine: reachable by Systems Manager, and nothing more yet.

    AWS's policy for that would also let it read every parameter of the account, secrets among them.
    """
    policy = "AmazonSSMManagedInstanceCore"
    role = iam.Role(
        scope,
        construct_id,
        assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
        managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(policy)],
    )
    accept_policy(role, policy, "What the agent of Systems Manager needs is AWS's to say; it takes the place of SSH.")
    role.add_to_policy(
        iam.PolicyStatement(effect=iam.Effect.DENY, actions=["ssm:GetParameter", "ssm:GetParameters"], resources=["*"])
    )
    return role


def allow_objects(role: iam.Role, bucket: s3.IBucket, actions: Sequence[str], *, under: Sequence[str] = ("",)) -> None:
    """Let the role do this to the objects below these prefixes, and list and find the bucket.

    Listing is not limited to the prefixes: with such a condition S3 answers 403 instead of 404 for an object that is
    missing, and Hadoop takes that for a failure.
    """
    role.add_to_policy(
        iam.PolicyStatement(
            actions=["s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"],
            resources=[bucket.bucket_arn],
        )
    )
    role.add_to_policy(
        iam.PolicyStatement(actions=list(actions), resources=[bucket.arn_for_objects(f"{prefix}*") for prefix in under])
    )
    resource = bucket.node.default_child
    name = f"arn:<AWS::Partition>:s3:::{bucket.bucket_name}"
    if isinstance(resource, s3.CfnBucket):
        name = f"<{Stack.of(bucket).get_logical_id(resource)}.Arn>"
    for prefix in under:
        accept(
            role.node.find_child("DefaultPolicy"),
            f"IAM5[Resource::{name}/{prefix}*]",
            "The names of objects are not known beforehand; the bucket, or what has this prefix, is the deployment's.",
        )
