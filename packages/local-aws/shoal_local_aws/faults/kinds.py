"""Kinds of faults. Text fields are patterns: `*` matches any value."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Base class of faults. Each public subclass is a kind."""


@dataclass(frozen=True, kw_only=True)
class NoCapacity(Fault):
    """A zone has no capacity for a type on a market (`on-demand`, `spot`)."""

    zone: str = "*"
    instance_type: str = "*"
    market: str = "*"


@dataclass(frozen=True, kw_only=True)
class NotOffered(Fault):
    """A zone does not offer a type."""

    instance_type: str
    zone: str = "*"


@dataclass(frozen=True, kw_only=True)
class SilentBoot(Fault):
    """Instances of a type run, but their user data does not, so they never report."""

    instance_type: str = "*"


@dataclass(frozen=True, kw_only=True)
class StaysPending(Fault):
    """Instances of a type stay pending and never run."""

    instance_type: str = "*"


@dataclass(frozen=True, kw_only=True)
class SpotInterruption(Fault):
    """A node's metadata announce its end in two minutes. The test that requested the fault must terminate the node."""

    instance: str = "*"


@dataclass(frozen=True, kw_only=True)
class RebalanceAdvice(Fault):
    """A node's metadata announce a higher risk of interruption."""

    instance: str = "*"


@dataclass(frozen=True, kw_only=True)
class JobInterrupted(Fault):
    """SageMaker interrupts a spot job after its first checkpoint, and starts it again."""

    job: str = "*"
    times: int | None = 1


@dataclass(frozen=True, kw_only=True)
class QuotaLimit(Fault):
    """Value of a service quota in the quota's unit: for `L-DB2E81BA` the vCPUs of on-demand G and VT instances."""

    code: str
    value: float


@dataclass(frozen=True, kw_only=True)
class FreePlan(Fault):
    """The account has AWS's Free plan. Its groups start only instance types of the Free Tier."""


@dataclass(frozen=True, kw_only=True)
class VolumeKey(Fault):
    """A KMS key of the account replaces AWS's own as the default key of encrypted volumes."""

    key: str


@dataclass(frozen=True, kw_only=True)
class _ResourceFault(Fault):
    """A fault of CloudFormation. It happens `times` times, or always with None."""

    resource_type: str = "*"
    logical_id: str = "*"
    reason: str = "Internal Failure"
    times: int | None = None


class CreateFails(_ResourceFault):
    """CloudFormation fails to create a resource."""


class DeleteFails(_ResourceFault):
    """CloudFormation fails to delete a resource."""


@dataclass(frozen=True, kw_only=True)
class _RequestFault(Fault):
    """A fault of a random `share` of the requests. It happens `times` times, or always with None."""

    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Throttled(_RequestFault):
    """A service (named as in IAM: `cloudformation`, `elasticmapreduce`) throttles an operation."""

    service: str
    operation: str = "*"


@dataclass(frozen=True, kw_only=True)
class S3Error(_RequestFault):
    """S3 returns `500 InternalError` for an operation and does nothing."""

    operation: str = "*"


@dataclass(frozen=True, kw_only=True)
class CutConnection(_RequestFault):
    """The connection breaks in the middle of a GetObject response of at least `least` bytes."""

    least: int = 1 << 16


@dataclass(frozen=True, kw_only=True)
class LateUpload(Fault):
    """An object arrives in a bucket just before its deletion, like a cluster's last log."""

    bucket: str = "*"
    key: str = "late.gz"
    times: int | None = 1


@dataclass(frozen=True, kw_only=True)
class LateInterfaces(Fault):
    """A cluster's network interfaces leave its subnet and its security groups `seconds` after its end."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class ConcurrentRevocation(Fault):
    """Another client revokes the rules of a security group just before a request to revoke them."""

    times: int | None = 1


@dataclass(frozen=True, kw_only=True)
class StaleAnswer(Fault):
    """A service repeats its first response to the same request for some seconds, even if the state has changed."""

    service: str
    operation: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class AttemptFaults(Fault):
    """Hadoop kills a share of the attempts, and starts a second, simultaneous attempt for a share of the tasks.

    Both happen within `within` seconds from an attempt's start. `seed` determines all random decisions, including the
    order of a key's values.
    """

    seed: int = 0
    killed: float = 0.0
    doubled: float = 0.0
    within: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Denied(Fault):
    """The user may not call an operation (API name) of a service (IAM name)."""

    service: str
    operation: str = "*"


@dataclass(frozen=True, kw_only=True)
class ExpiredCredentials(Fault):
    """The session of an access key has expired."""

    key: str = "*"
