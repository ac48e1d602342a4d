"""Builds the policy of the S3 gateway endpoint for a network without internet access.

Without a policy the gateway gives access to the buckets of all AWS accounts. With it nodes write only to buckets of
their own account, and read what their role allows. AWS's own buckets that a node needs are allowed by name. Do not
limit these rules to a principal, because packages and agents are downloaded without credentials.
"""

from aws_cdk import Stack
from aws_cdk import aws_iam as iam

from infra import topology

# https://docs.aws.amazon.com/systems-manager/latest/userguide/ssm-agent-technical-details.html, for Linux.
_OF_SYSTEMS_MANAGER = (
    "aws-ssm-{region}",
    "amazon-ssm-{region}",
    "amazon-ssm-packages-{region}",
    "aws-ssm-document-attachments-{region}",
    "aws-ssm-distributor-file-{region}",
    "patch-baseline-snapshot-{region}",
    "{region}-birdwatcher-prod",
)
_OF_AMAZON_LINUX = ("al2023-repos-{region}-de612dc2",)
# https://docs.aws.amazon.com/emr/latest/ManagementGuide/private-subnet-iampolicy.html; the last two hold
# EMR's own steps and scripts.
_OF_EMR = ("repo.{region}.emr.amazonaws.com", "{region}.elasticmapreduce", "elasticmapreduce")
_OF_EMRS_HISTORY = "prod.{region}.appinfo.src"


def statements(stack: Stack, spec: topology.Topology) -> list[iam.PolicyStatement]:
    """The policy's statements for a network of the deployment's own; none with NAT, which allows everything."""
    if spec.network.egress == "nat":
        return []
    account = stack.account
    found = [
        _allow(["s3:*"], ["*"], {"aws:ResourceAccount": account}),
        # The role of the nodes limits which objects.
        _allow(["s3:Get*", "s3:List*"], ["*"], {"aws:PrincipalAccount": account}),
        _allow(
            ["s3:GetObject"],
            _objects(stack, *_OF_AMAZON_LINUX, *(_OF_SYSTEMS_MANAGER if spec.network.shell else ())),
        ),
    ]
    if spec.preprocessing:
        log = "aws157-logs-prod" if stack.region == "us-east-1" else "aws157-logs-prod-{region}"
        found += [
            _allow(["s3:GetObject"], _objects(stack, *_OF_EMR)),
            _allow(["s3:Put*"], _objects(stack, log)),
            _allow(["s3:Put*", "s3:Get*", "s3:Create*", "s3:Abort*", "s3:List*"], _objects(stack, _OF_EMRS_HISTORY)),
        ]
    return found


def _objects(stack: Stack, *buckets: str) -> list[str]:
    names = (name.format(region=stack.region) for name in buckets)
    return [stack.format_arn(service="s3", region="", account="", resource=name, resource_name="*") for name in names]


def _allow(actions: list[str], resources: list[str], where: dict[str, str] | None = None) -> iam.PolicyStatement:
    """Allow it for everyone: the policy of a gateway limits requests, and roles permit them."""
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=actions,
        resources=resources,
        conditions={"StringEquals": where} if where else None,
    )
