"""What the parts of a deployment that compute have in common: what they belong to, their role, their payload."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct
from shoal_guard.grants import READ, accept, accept_pattern, allow

from infra import addresses, topology
from infra.payload import Payload
from infra.storage import Buckets

WRITE = ("s3:PutObject", "s3:AbortMultipartUpload")
REPLACE = (*READ, *WRITE, "s3:DeleteObject")

AGENT = ("bootstrap/__init__.py", "bootstrap/agent")
_BALANCE = ("packages/balance/shoal_balance", "shoal_balance")
"""In a checkout; where Shoal is installed. A node's PYTHONPATH leads to both."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What all stages of a deployment share; `root` is the repository, `key` encrypts in place of AWS's keys."""

    name: str
    spec: topology.Topology
    root: Path
    buckets: Buckets
    key: kms.IKey | None

    @property
    def runs(self) -> str:
        """The prefix of its runs in the data bucket, which may hold those of other deployments."""
        return f"{topology.RUNS_PREFIX}{self.name}."

    @property
    def trainer(self) -> tuple[str, ...]:
        """The packages of a training."""
        balance = next((each for each in _BALANCE if (self.root / each).exists()), _BALANCE[0])
        return ("common", "corpus", "trainer", balance)


class Stage(Construct):
    """A part of a deployment that computes: the EMR cluster, the node groups, or the training jobs of SageMaker.

    `machines` are its resources that cost by the hour and write to the buckets. `outputs` are the outputs of the
    stack that describe this stage.
    """

    role: iam.Role
    machines: list[IConstruct]
    outputs: Mapping[str, str]
    payload: Payload

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        deployment: Deployment,
        *,
        wheels: Path,
        packages: Sequence[str],
        script: str,
    ) -> None:
        """Upload what its machines download: packages, wheels, and the boot script, a path below `bootstrap/`."""
        super().__init__(scope, construct_id)
        root = deployment.root
        self.payload = Payload(
            self, "Payload", root=root, packages=packages, wheels=root / wheels, script=root / "bootstrap" / script
        )


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
