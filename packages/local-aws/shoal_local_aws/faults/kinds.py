"""Kinds of faults. String fields are patterns, in which `*` matches any value."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Base class of faults. Each public subclass is a kind."""


@dataclass(frozen=True, kw_only=True)
class NoCapacity(Fault):
    """A zone has no capacity for an instance type on a market (`on-demand`, `spot`)."""

    zone: str = "*"
    instance_type: str = "*"
    market: str = "*"


@dataclass(frozen=True, kw_only=True)
class NotOffered(Fault):
    """A zone does not offer an instance type."""

    instance_type: str
    zone: str = "*"


@dataclass(frozen=True, kw_only=True)
class SilentBoot(Fault):
    """Instances run, but their user data is not executed, so they never report."""


@dataclass(frozen=True, kw_only=True)
class StaysPending(Fault):
    """Instances remain in the state `pending` and never run."""


@dataclass(frozen=True, kw_only=True)
class SpotInterruption(Fault):
    """The metadata of a spot node announce its termination in two minutes. The test itself must terminate the node."""

    instance: str = "*"


@dataclass(frozen=True, kw_only=True)
class JobInterrupted(Fault):
    """SageMaker interrupts a spot training job after its first checkpoint, and starts it again."""

    times: int = 1


@dataclass(frozen=True, kw_only=True)
class QuotaLimit(Fault):
    """A service quota has this value, in the quota's unit. `L-DB2E81BA`, for example, limits the vCPUs of on-demand G
    and VT instances."""

    code: str
    value: float


@dataclass(frozen=True, kw_only=True)
class FreePlan(Fault):
    """The account has AWS's Free plan. Auto scaling groups can start only instance types of the Free Tier."""


@dataclass(frozen=True, kw_only=True)
class VolumeKey(Fault):
    """The default key for encrypted volumes is a KMS key of the account instead of AWS's own key."""

    key: str


@dataclass(frozen=True, kw_only=True)
class _ResourceFault(Fault):
    """A CloudFormation fault. It happens `times` times (None: always)."""

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
    """A fault that affects a random `share` of the requests. It happens `times` times (None: without limit)."""

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
    """An object arrives in a bucket just before the bucket is deleted, like the last log of a cluster."""

    key: str = "late.gz"
    times: int | None = 1


@dataclass(frozen=True, kw_only=True)
class LateInterfaces(Fault):
    """The network interfaces of a cluster remain in its subnet and security groups until `seconds` after its
    termination."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class GuardDutyAgent(Fault):
    """GuardDuty adds an endpoint and a security group to a network in which an instance starts, and leaves them there.
    The deletion of the endpoint takes `seconds`."""

    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ConcurrentRevocation(Fault):
    """Another client revokes the rules of a security group just before a request to revoke them."""

    times: int | None = 1


@dataclass(frozen=True, kw_only=True)
class StaleAnswer(Fault):
    """A service answers equal requests with its first response for `seconds`, even if the state has changed."""

    service: str
    operation: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class AttemptFaults(Fault):
    """Hadoop kills a fraction `killed` of the attempts, and runs two attempts at once for a fraction `doubled` of the
    tasks.

    Both happen within `within` seconds after the start of an attempt. `seed` determines all random decisions, including
    the order of a key's values.
    """

    seed: int = 0
    killed: float = 0.0
    doubled: float = 0.0
    within: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Denied(Fault):
    """The user has no permission for an operation of a service. `operation` is the operation's name in the API,
    `service` is the service's name in IAM."""

    service: str
    operation: str = "*"


@dataclass(frozen=True, kw_only=True)
class ExpiredCredentials(Fault):
    """The session of an access key has expired."""

    key: str = "*"
