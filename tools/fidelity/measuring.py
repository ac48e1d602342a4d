"""Measures the emulator: sends one request for each operation, and runs the demo."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import Throttled
from shoal_local_aws.permissions.record import ALLOWED, read_checks

from bootstrap.demo import life

_ABSENT = ("InvalidAction", "NotImplemented", "UnknownOperation", "UnknownOperationException", "501", "405")
"""Error codes with which the emulator answers operations that it does not have."""
_THROTTLED = (
    *("503", "RequestLimitExceeded", "SlowDown", "Throttling", "ThrottlingException", "TooManyRequestsException"),
)
_CALLERS = {
    "-cfn-exec-": "CloudFormation",
    "cdk-": "CDK",
    "Guard": "guard",
    "Cleanup": "cleanup",
    "Training": "GPU nodes",
    "Preprocessing": "EMR",
}
"""Names of callers, by a substring of the role name."""


@dataclass(frozen=True, kw_only=True)
class _ProbeResult:
    """Result for one operation: the IAM actions that the emulator checked, whether the emulator has the operation, and
    whether an injected fault can refuse the operation."""

    actions: list[str]
    emulated: bool
    refusable: bool


def measure(calls: Iterable[tuple[str, str]], say: Callable[[str], None]) -> dict[str, Any]:
    """Send one request for each operation in `calls` to an emulator, and run the demo. Return the measurements."""
    with TemporaryDirectory(prefix="shoal-fidelity-") as name:
        with EmbeddedAws(Path(name) / "aws") as aws:
            probe = _Probe(aws)
            probed = {f"{service} {operation}": probe(service, operation) for service, operation in sorted(calls)}
        life.run([], Path(name) / "demo", say=say)
        callers: dict[str, set[str]] = defaultdict(set)
        for check in read_checks(Path(name) / "demo"):
            callers[check.action].add(_caller(check.who))
    return {
        "operations": {name: each.actions for name, each in probed.items()},
        "absent": [name for name, each in probed.items() if not each.emulated],
        "unrefused": [name for name, each in probed.items() if not each.refusable],
        "actions": {action: sorted(who) for action, who in sorted(callers.items())},
    }


def _caller(who: str) -> str:
    """Return the name of a caller for the page. `who` is a user or a role of the demo."""
    name = who.partition("/")[2]
    if who.startswith("user/"):
        return "commands"
    return next((words for part, words in _CALLERS.items() if part in name), name)


class _Probe:
    """Sends requests that have only the required fields of an operation."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self._aws, variables = aws, aws.environment
        self._session = boto3.Session(
            aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
            region_name=variables["AWS_REGION"],
        )
        self._client = cache(self._make_client)

    def _make_client(self, service: str) -> Any:
        once = Config(retries={"total_max_attempts": 1})
        return self._session.client(service, endpoint_url=self._aws.endpoint, config=once)  # type: ignore[call-overload]

    def __call__(self, service: str, operation: str) -> _ProbeResult:
        if service == "s3":  # the bucket must exist, because S3 checks it before permissions
            self._client("s3").create_bucket(Bucket=_minimal_text(3))
        before = len(list(read_checks(self._aws.folder)))
        code = self._code(service, operation)
        checks = list(read_checks(self._aws.folder))[before:]
        with self._aws.faults.during(Throttled(service="*", operation=operation)):
            refused = self._code(service, operation)
        return _ProbeResult(
            actions=sorted({each.action for each in checks if each.decision == ALLOWED}),
            emulated=code not in _ABSENT and any(each.decision == ALLOWED for each in checks),
            refusable=refused in _THROTTLED,
        )

    def _code(self, service: str, operation: str) -> str:
        """Send a request. Return its error code, or an empty string if it succeeded."""
        client = self._client(service)
        shape = client.meta.service_model.operation_model(operation).input_shape
        try:
            client._make_api_call(operation, _minimal_value(shape) if shape else {})
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return ""


def _minimal_value(shape: Any) -> Any:
    """Return the smallest value that AWS accepts for a shape of botocore."""
    kind = shape.type_name
    if kind == "structure":
        return {name: _minimal_value(shape.members[name]) for name in shape.required_members}
    if kind == "list":
        return [_minimal_value(shape.member)]
    if kind == "map":
        return {}
    text = (shape.enum or [_minimal_text(shape.metadata.get("min", 0))])[0] if kind == "string" else b""
    numbers = {"integer": 1, "long": 1, "float": 1.0, "double": 1.0, "boolean": False, "timestamp": 0}
    return numbers.get(kind, text)


def _minimal_text(least: int) -> str:
    """Return a string of at least `least` characters that is also a valid bucket name."""
    return "x" * max(3, least)
