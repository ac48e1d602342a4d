"""The policy of S3's gateway endpoint in a network without a way to the internet.

Without a policy the gateway leads to the buckets of all AWS accounts. With it nodes write only into buckets of their
own account, and read what their role allows. In addition, AWS's own buckets that a machine needs are allowed by
name. These rules must not ask who calls, because packages and agents are fetched without credentials.
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
# https://docs.aws.amazon.com/emr/latest/ManagementGuide/private-subnet-iampolicy.html; the last two hold what EMR's own
# steps and scripts are made of.
_OF_EMR = ("repo.{region}.emr.amazonaws.com", "{region}.elasticmapreduce", "elasticmapreduce")
_OF_EMRS_HISTORY = "prod.{region}.appinfo.src"


def statements(stack: Stack, spec: topology.Topology) -> list[iam.PolicyStatement]:
    """The policy of the gateway, for a topology in a network of its own; none where NAT leads everywhere anyway."""
    if spec.network.egress == "nat":
        return []
    account = stack.account
    found = [
        _allow(["s3:*"], ["*"], {"aws:ResourceAccount": account}),
        # The nodes' role says which.
        _allow(["s3:Get*", "s3:List*"], ["*"], {"aws:PrincipalAccount": account}),
        _allow(["s3:GetObject"], _objects(stack, *_OF_AMAZON_LINUX, *_OF_SYSTEMS_MANAGER)),
    ]
    if spec.data.bucket:
        # It may be another account's, which has let this one in.
        bucket = stack.format_arn(service="s3", region="", account="", resource=spec.data.bucket)
        found.append(_allow(["s3:*"], [bucket, f"{bucket}/*"], {"aws:PrincipalAccount": account}))
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
    """For whoever asks, as a gateway's policy limits and does not permit."""
    return iam.PolicyStatement(
        principals=[iam.AnyPrincipal()],
        actions=actions,
        resources=resources,
        conditions={"StringEquals": where} if where else None,
    )
