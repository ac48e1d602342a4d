"""Defines the kinds of faults. A field with the value `*` matches any value."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NoCapacity:
    """No instance of a type starts in a zone, on one market (`on-demand`, `spot`)."""

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
    """Instances of a type stay pending and never run."""

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
    """A service (named as in IAM: `cloudformation`, `elasticmapreduce`) throttles an operation.

    `share` of the requests, chosen at random, is refused.
    """

    service: str
    operation: str = "*"
    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class S3Error:
    """S3 answers a share of an operation's requests with `500 InternalError` and does nothing."""

    operation: str = "*"
    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class CutConnection:
    """The connection ends in the middle of a share of S3's answers to GetObject with `least` or more bytes."""

    least: int = 1 << 16
    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class AttemptFaults:
    """Hadoop kills a share of the attempts and starts a second attempt of a share of the tasks beside the first.

    `within`: seconds from an attempt's start in which it is killed or doubled. `seed`: for all random decisions,
    including the order of a key's values.
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
