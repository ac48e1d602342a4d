"""Logs of a deployment: logs of the newest EMR steps, of the nodes' first boots, of the runs and of the guard.

Do not wait for the log of a step, because EMR uploads it minutes after the step has ended. Until then, return the
address where the log will be.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from common import names
from common.errors import ShoalError
from common.names import LOG
from corpus.reading.s3 import S3Path, read_from
from shoal.aws import boot_report, checked, objects
from shoal.aws.account import Account
from shoal.deployments.status import Status
from trainer.rank_processes import split_rank_prefix

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

_STEPS = 5
_LINES = 10
"""Number of lines from the end of each log. The whole logs are in the deployment's buckets."""
_DAY_MS = 86_400_000
_PIECE_BYTES = 4 << 20
_LAMBDA_PREFIXES = ("INIT_START ", "START RequestId: ", "END RequestId: ", "REPORT RequestId: ")
"""Prefixes of log lines that Lambda writes, and not the guard."""


@dataclass(frozen=True, kw_only=True)
class LogExcerpt:
    """Last lines of a log. `who` names the source of the log, and `state` is the state of the source."""

    who: str
    state: str
    lines: list[str]
    is_unknown: bool = False
    """Whether AWS refused to return the log."""


def steps(account: Account, now: Status) -> list[LogExcerpt]:
    """Return the newest steps of the EMR cluster, newest first. Only failed steps have lines: the end of the step's
    log."""
    if now.cluster is None:
        return []
    try:
        steps = account.items("emr", "list_steps", "Steps", ClusterId=now.cluster.identifier)
        newest = list(islice(steps, _STEPS))
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidRequestException":
            raise
        return []  # EMR no longer knows the cluster
    return [_step(account, now, now.cluster.identifier, step) for step in newest]


def nodes(account: Account, now: Status) -> list[LogExcerpt]:
    """Return the reports of the nodes' first boots, sorted by instance id."""
    bucket = now.outputs.get(names.OUTPUT_DATA_BUCKET)
    if bucket is None:
        return []
    try:
        keys = objects.sizes(account.client("s3"), S3Path(bucket, names.NODES))
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise
        return []  # the bucket was deleted with its stack
    reported = sorted(key.removeprefix(names.NODES).removesuffix(".json") for key in keys if key.endswith(".json"))
    excerpts = []
    for instance in reported:
        report = boot_report.read_report(account, bucket, instance)
        lines = report.get("log", "").strip().splitlines()[-_LINES:]
        python = f", Python {report['python']}" if "python" in report else ""
        state = report.get("state", "unknown") + python
        excerpts.append(LogExcerpt(who=f"node {instance}", state=state, lines=lines))
    return excerpts


class ProgramLogs:
    """Output of a run's ranks and readers, read from the growing logs in the data bucket."""

    def __init__(self, s3: "S3Client", bucket: str, run: str) -> None:
        """Raises ShoalError if `run` is not a valid name, or if the bucket has no files of this run."""
        self._s3, self._folder = s3, S3Path(bucket, f"{names.RUNS}{checked.run(run)}/")
        self._read: dict[str, int] = {}
        if not objects.sizes(s3, self._folder):
            raise ShoalError(f"there is no run '{run}' in s3://{bucket}/{names.RUNS}")

    def more(self, rank: int | None = None) -> Iterator[str]:
        """Yield the complete lines that were added since the last call. With `rank`, yield only the lines of this rank.

        Each line has a prefix such as `node-0 attempt 2 rank 2 | `, which names the node, the attempt and the rank. The
        first attempt is not named.
        """
        for key, size in sorted(objects.sizes(self._s3, self._folder).items()):
            name = key.removeprefix(self._folder.key)
            before = self._read.get(name, 0)
            if (log := LOG.fullmatch(name)) is None or size <= before:
                continue
            where = log["program"] + (f" attempt {log['attempt']}" if log["attempt"] else "")
            for line in self._lines(name, S3Path(self._folder.bucket, key), size):
                printed, text = split_rank_prefix(line)
                if rank in (None, printed):
                    of = "" if printed is None else f" rank {printed}"
                    yield f"{where}{of} | {text}"

    def _lines(self, name: str, place: S3Path, size: int) -> Iterator[str]:
        """Yield the complete, unread lines of a log. A line that is longer than _PIECE_BYTES is split."""
        while (before := self._read.get(name, 0)) < size:
            piece = read_from(self._s3, place, before, _PIECE_BYTES)
            whole = piece[: piece.rfind(b"\n") + 1] or (piece if len(piece) == _PIECE_BYTES else b"")
            if not whole:
                return
            self._read[name] = before + len(whole)
            yield from whole.decode("utf-8", "replace").splitlines()


def guard(account: Account, now: Status) -> LogExcerpt | None:
    """Return the last lines of the guard's log from the last 24 hours, or None if no guard exists."""
    function = now.outputs.get(names.OUTPUT_GUARD)
    if function is None:
        return None
    try:
        configuration = account.client("lambda").get_function_configuration(FunctionName=function)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        return None  # somebody deleted the function
    name = configuration.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{function}"
    since = int(time.time() * 1000) - _DAY_MS
    try:
        events = list(account.items("logs", "filter_log_events", "events", logGroupName=name, startTime=since))
    except ClientError as error:
        state = f"Shoal cannot read its log {name}: {error.response['Error']['Code']}"
        return LogExcerpt(who="guard", state=state, lines=[], is_unknown=True)
    messages = (str(event["message"]).rstrip() for event in sorted(events, key=lambda event: event["timestamp"]))
    lines = [line for line in messages if not line.startswith(_LAMBDA_PREFIXES)]
    return LogExcerpt(who="guard", state="runs every five minutes", lines=lines[-_LINES:])


def _step(account: Account, now: Status, cluster: str, step: Any) -> LogExcerpt:
    state = step["Status"]["State"]
    who = f"step {step['Id']} ({step['Name']})"
    if state != "FAILED":
        return LogExcerpt(who=who, state=state, lines=[])
    log = S3Path(
        now.outputs.get(names.OUTPUT_LOG_BUCKET, ""),
        f"{names.EMR_LOGS}{cluster}/steps/{step['Id']}/stderr.gz",
    )
    text = objects.log_tail(account.client("s3"), log) if log.bucket else None
    lines = (text or "").splitlines()[-_LINES:]
    details = step["Status"].get("FailureDetails", {})
    why = details.get("Message") or details.get("Reason") or "no reason was given"
    return LogExcerpt(
        who=who, state=f"{state}: {why}", lines=lines or [f"its log will be at {log} some minutes after the step's end"]
    )
