"""The faults that there are, and what each is about; a field that is `*` stands for any."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NoCapacity:
    """No instance of a type starts in a zone, on one market (`on-demand`, `spot`); `*` stands for any."""

    zone: str = "*"
    instance_type: str = "*"
    market: str = "*"


@dataclass(frozen=True, kw_only=True)
class NotOffered:
    """A zone does not have a type at all: DescribeInstanceTypeOfferings leaves it out, and none starts."""

    instance_type: str
    zone: str = "*"


@dataclass(frozen=True, kw_only=True)
class SilentBoot:
    """Instances of a type run, but their user data does not: they never report anything."""

    instance_type: str = "*"


@dataclass(frozen=True, kw_only=True)
class StaysPending:
    """Instances of a type are given, and never begin to run."""

    instance_type: str = "*"


@dataclass(frozen=True, kw_only=True)
class QuotaLimit:
    """A service quota's value, in its unit: `L-DB2E81BA` are the vCPUs of on-demand G and VT instances."""

    code: str
    value: float


@dataclass(frozen=True, kw_only=True)
class CreateFails:
    """CloudFormation cannot create a resource; `times`: how often, None always."""

    resource_type: str = "*"
    logical_id: str = "*"
    reason: str = "Internal Failure"
    times: int | None = None


@dataclass(frozen=True, kw_only=True)
class DeleteFails:
    """CloudFormation cannot delete a resource; `times`: how often, None always."""

    resource_type: str = "*"
    logical_id: str = "*"
    reason: str = "Internal Failure"
    times: int | None = None


@dataclass(frozen=True, kw_only=True)
class Throttled:
    """An operation of a service (its name as in IAM: `cloudformation`, `elasticmapreduce`) is asked too often.

    `share` is of its requests, chosen by chance.
    """

    service: str
    operation: str = "*"
    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class S3Error:
    """A share of S3's answers to an operation is `500 InternalError`: nothing was done."""

    operation: str = "*"
    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class CutConnection:
    """The connection ends in the middle of a share of S3's answers to GetObject of at least so many bytes."""

    least: int = 1 << 16
    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class AttemptFaults:
    """Hadoop kills a share of the attempts and starts a second attempt of a share of the tasks beside the first.

    `within`: seconds from an attempt's start in which it is killed, or doubled. `seed`: of all that chance decides,
    the order of a key's values included.
    """

    seed: int = 0
    killed: float = 0.0
    doubled: float = 0.0
    within: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Denied:
    """The user may not call an operation (as its API names it) of a service (as IAM does)."""

    service: str
    operation: str = "*"


Fault = (
    NoCapacity
    | NotOffered
    | SilentBoot
    | StaysPending
    | QuotaLimit
    | CreateFails
    | DeleteFails
    | Throttled
    | S3Error
    | CutConnection
    | AttemptFaults
    | Denied
)
