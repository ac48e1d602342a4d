"""Logs of Lambda functions, and the EventBridge rules that invoke functions."""

from collections.abc import Callable

from shoal_local_aws.seams.lookup import MinistackModule, Operation, PatchPoint, Record, Table

_eventbridge = MinistackModule("services.eventbridge")

write_logs: PatchPoint[Callable[..., None]] = PatchPoint("_emit_lambda_logs", MinistackModule("services.lambda_svc"))
"""Writes a function's output to its log group. Creates the log group if it is missing."""

log_groups: Table = MinistackModule("services.cloudwatch_logs").take("_log_groups")
"""Log groups by name."""

delete_rule: PatchPoint[Operation] = PatchPoint("_delete_rule", _eventbridge)
"""DeleteRule. Argument: the request."""

_rule_key: Callable[[str | None, str], str] = _eventbridge.take("_rule_key")
_targets: Table = _eventbridge.take("_targets")


def has_targets(request: Record) -> bool:
    return bool(_targets.get(_rule_key(request.get("Name"), request.get("EventBusName", "default"))))
