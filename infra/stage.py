"""Base class and helpers of the stages: preprocessing, node groups and managed training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct
from shoal_guard.grants import READ, accept, accept_pattern, allow

from common import names
from infra import addresses, topology
from infra.payload import Payload
from infra.storage import Buckets

WRITE = ("s3:PutObject", "s3:AbortMultipartUpload")
REPLACE = (*READ, *WRITE, "s3:DeleteObject")

AGENT = ("bootstrap/__init__.py", "bootstrap/node")
_BALANCE = ("packages/balance/shoal_balance", "shoal_balance")
"""Paths of the balancer: in a checkout, and in an installed Shoal. A node's PYTHONPATH contains the parent folders of
both paths."""


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """Settings that all stages share. `root` is the repository. If `key` is not None, it replaces AWS's encryption
    keys. Instances of an emulated deployment have no GPU."""

    name: str
    spec: topology.Topology
    root: Path
    buckets: Buckets
    key: kms.IKey | None
    emulated: bool

    @property
    def runs(self) -> str:
        """Prefix of this deployment's runs in the data bucket, as a pattern of IAM: the start time and four hexadecimal
        digits follow the name. An existing bucket can also contain runs of other deployments, and other objects."""
        return f"{names.RUNS}{self.name}.????????T??????-????/"

    @property
    def trainer(self) -> tuple[str, ...]:
        """Paths of the Python packages that training needs."""
        balance = next((each for each in _BALANCE if (self.root / each).exists()), _BALANCE[0])
        return ("common", "corpus", "trainer", balance)


class Stage(Construct):
    """Stage of a deployment: the EMR cluster, the node groups, or the SageMaker training jobs.

    `machines` are the resources that are charged by the hour and write to the buckets. `outputs` are the stack outputs
    that describe the stage.
    """

    role: iam.Role
    machines: list[IConstruct]
    outputs: Mapping[str, str]
    payload: Payload

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        deployment: SharedSettings,
        *,
        wheels: Path,
        packages: Sequence[str],
        script: str,
    ) -> None:
        """Upload the payload for the machines: `packages`, `wheels`, and the boot script `script` from the folder
        bootstrap/."""
        super().__init__(scope, construct_id)
        root = deployment.root
        self.payload = Payload(
            self, "Payload", root=root, packages=packages, wheels=root / wheels, script=root / "bootstrap" / script
        )


def accept_policy(role: iam.Role, policy: str, reason: str) -> None:
    """Suppress the cdk-nag finding that the role uses this AWS managed policy."""
    accept(role, f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{policy}]", reason)


def same_account_principal(stack: Stack, principal: str, *, service: str, name: str) -> iam.ServicePrincipal:
    """Return a service principal that can assume a role only on behalf of the resources `name` of `service` in this
    account.

    Use this principal only for services that send the source account and ARN, such as EMR and flow logs. AWS does not
    document that EC2 and Lambda send them, so these services might fail to assume the role.
    """
    return iam.ServicePrincipal(
        principal,
        conditions={
            "StringEquals": {"aws:SourceAccount": stack.account},
            "ArnLike": {"aws:SourceArn": f"arn:{stack.partition}:{service}:{stack.region}:{stack.account}:{name}"},
        },
    )


def node_role(scope: Construct, *, shell: bool) -> iam.Role:
    """Create the role of nodes. With `shell`, the role has the permissions for a shell through Systems Manager. Without
    `shell`, it has no permissions.

    AWS's managed policy for shells also allows reading every SSM parameter of the account, so the role denies this.
    """
    role = iam.Role(scope, "NodeRole", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
    if not shell:
        return role
    policy = "AmazonSSMManagedInstanceCore"
    role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(policy))
    accept_policy(role, policy, "AWS decides what the agent of Systems Manager needs. The agent replaces SSH.")
    role.add_to_policy(
        iam.PolicyStatement(effect=iam.Effect.DENY, actions=["ssm:GetParameter", "ssm:GetParameters"], resources=["*"])
    )
    return role


def allow_inputs(role: iam.Role, named: Sequence[str]) -> None:
    """Allow the role to read and list the inputs in `named`, but not to list other objects in the same buckets.

    So S3 answers 403 instead of 404 for a missing object. This is acceptable, because only Shoal's code reads these
    buckets, not Hadoop.
    """
    stack = Stack.of(role)
    for address in named:
        name, key = addresses.split(address)
        bucket = stack.format_arn(service="s3", region="", account="", resource=name)
        keys = addresses.patterns(address)
        allow(role, ["s3:ListBucket"], [bucket], {"StringLike": {"s3:prefix": keys}} if key else None)
        allow(role, READ, [f"{bucket}/{each}" for each in keys])
        reason = (
            "The names of the objects are not known beforehand. The topology names the folder or bucket above them."
        )
        accept_pattern(role, f"arn:<AWS::Partition>:s3:::{name}/{keys[-1]}", reason)
