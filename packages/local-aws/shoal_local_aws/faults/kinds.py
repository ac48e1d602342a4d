"""Defines the kinds of faults. A field with the value `*` matches any value."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What fails; each subclass without an underscore is a kind."""


@dataclass(frozen=True, kw_only=True)
class NoCapacity(Fault):
    """No instance of a type starts in a zone, on one market (`on-demand`, `spot`)."""

    zone: str = "*"
    instance_type: str = "*"
    market: str = "*"


@dataclass(frozen=True, kw_only=True)
class NotOffered(Fault):
    """A zone does not have a type at all: none starts."""

    instance_type: str
    zone: str = "*"


@dataclass(frozen=True, kw_only=True)
class SilentBoot(Fault):
    """Instances of a type run, but their user data does not: they never report anything."""

    instance_type: str = "*"


@dataclass(frozen=True, kw_only=True)
class StaysPending(Fault):
    """Instances of a type stay pending and never run."""

    instance_type: str = "*"


@dataclass(frozen=True, kw_only=True)
class SpotInterruption(Fault):
    """A node's metadata say that AWS ends it in two minutes. Whoever has asked for this fault then terminates it."""

    instance: str = "*"


@dataclass(frozen=True, kw_only=True)
class RebalanceAdvice(Fault):
    """A node's metadata say that AWS is likely to end it."""

    instance: str = "*"


@dataclass(frozen=True, kw_only=True)
class JobInterrupted(Fault):
    """SageMaker takes the machines of a spot job back, once it has left a checkpoint, and starts it again."""

    job: str = "*"
    times: int | None = 1


@dataclass(frozen=True, kw_only=True)
class QuotaLimit(Fault):
    """The value of a service quota, in the quota's unit: for `L-DB2E81BA` the vCPUs of on-demand G and VT instances."""

    code: str
    value: float


@dataclass(frozen=True, kw_only=True)
class FreePlan(Fault):
    """The account has AWS's Free plan, with which groups start no instances but those of the Free Tier."""


@dataclass(frozen=True, kw_only=True)
class VolumeKey(Fault):
    """This KMS key of the account is the key of encrypted volumes for which nobody names one, in place of AWS's own."""

    key: str


@dataclass(frozen=True, kw_only=True)
class _ResourceFault(Fault):
    """A fault of CloudFormation. It happens `times` times; None: always."""

    resource_type: str = "*"
    logical_id: str = "*"
    reason: str = "Internal Failure"
    times: int | None = None


class CreateFails(_ResourceFault):
    """CloudFormation cannot create a resource."""


class DeleteFails(_ResourceFault):
    """CloudFormation cannot delete a resource."""


@dataclass(frozen=True, kw_only=True)
class _RequestFault(Fault):
    """A fault of a `share` of the requests, chosen at random. It happens `times` times; None: always."""

    times: int | None = None
    share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Throttled(_RequestFault):
    """A service (named as in IAM: `cloudformation`, `elasticmapreduce`) throttles an operation."""

    service: str
    operation: str = "*"


@dataclass(frozen=True, kw_only=True)
class S3Error(_RequestFault):
    """S3 answers requests for an operation with `500 InternalError` and does nothing."""

    operation: str = "*"


@dataclass(frozen=True, kw_only=True)
class CutConnection(_RequestFault):
    """The connection ends in the middle of an answer of S3 to GetObject that has `least` or more bytes."""

    least: int = 1 << 16


@dataclass(frozen=True, kw_only=True)
class LateUpload(Fault):
    """An object arrives in a bucket just before S3 would delete it, as a cluster's last log does."""

    bucket: str = "*"
    key: str = "late.gz"
    times: int | None = 1


@dataclass(frozen=True, kw_only=True)
class LateInterfaces(Fault):
    """The network interfaces of a cluster leave its subnet and its security groups `seconds` after its end."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class RevokedMeanwhile(Fault):
    """Somebody else revokes the rules of a security group just before a request to revoke them."""

    times: int | None = 1


@dataclass(frozen=True, kw_only=True)
class StaleAnswer(Fault):
    """A service repeats its answer to the same request of an operation for some seconds, whatever happens meanwhile."""

    service: str
    operation: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class AttemptFaults(Fault):
    """Hadoop kills a share of the attempts, and starts a second attempt of a share of the tasks beside the first.

    `within`: seconds from an attempt's start in which it is killed or doubled. `seed`: for all random decisions,
    including the order of a key's values.
    """

    seed: int = 0
    killed: float = 0.0
    doubled: float = 0.0
    within: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Denied(Fault):
    """The user may not call an operation (as its API names it) of a service (as IAM does)."""

    service: str
    operation: str = "*"


@dataclass(frozen=True, kw_only=True)
class ExpiredCredentials(Fault):
    """The session of an access key has expired."""

    key: str = "*"
