"""Lets things happen late, or at the same time, as they do on AWS: an upload into a bucket that is being deleted, rules
that somebody else revokes, answers that do not show yet what has happened."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import LateUpload, RevokedMeanwhile, StaleAnswer
from shoal_local_aws.faults.operations import requested_operation
from shoal_local_aws.seams import ec2, routing, storage
from shoal_local_aws.service import Answer, Record


def install(faults: Faults) -> None:
    """Apply these faults. Call it after everything else that answers requests is installed."""
    storage.delete_bucket.wrap(partial(_after_late_upload, faults))
    for direction in ("Ingress", "Egress"):
        ec2.operations.wrap(f"RevokeSecurityGroup{direction}", partial(_after_another, faults))
    routing.dispatch.wrap(partial(_perhaps_stale, faults))


def _after_late_upload(faults: Faults, delete: Callable[[str], Answer]) -> Callable[[str], Answer]:
    def deleting(bucket: str) -> Answer:
        if fault := faults.trigger(LateUpload, bucket=bucket):
            storage.put_object(bucket, fault.key, b"late", {})
        return delete(bucket)

    return deleting


def _after_another(faults: Faults, revoke: Callable[[Record], Any]) -> Callable[[Record], Any]:
    def revoking(parameters: Record) -> Any:
        answer = revoke(parameters)
        if faults.trigger(RevokedMeanwhile):
            kind = "SecurityGroupRuleId" if ec2.list_parameter(parameters, "SecurityGroupRuleId") else "Permission"
            return ec2.error(f"Invalid{kind}.NotFound", "The specified rule does not exist.", 400)
        return answer

    return revoking


def _perhaps_stale(faults: Faults, dispatch: routing.Dispatch) -> routing.Dispatch:
    first: dict[str, tuple[float, Any]] = {}

    async def answered(method: str, path: str, headers: Record, body: bytes, query: Record, request_id: str) -> Any:
        if not faults.has_any(StaleAnswer):
            return await dispatch(method, path, headers, body, query, request_id)
        service, operation = requested_operation(method, path, headers, body, query)
        fault = faults.find(StaleAnswer, service=service, operation=operation)
        same = f"{method} {path} {query} {body!r}"
        if fault and same in first and time.monotonic() - first[same][0] < fault.seconds:
            return first[same][1]
        answer = await dispatch(method, path, headers, body, query, request_id)
        if fault:
            first[same] = time.monotonic(), answer
        return answer

    return answered
