"""Lambda: a function's logs; and the EventBridge rules that call functions."""

from collections.abc import Callable

from shoal_local_aws.seams.lookup import MinistackModule, Operation, Record, Seam, Table

_eventbridge = MinistackModule("services.eventbridge")

write_logs: Seam[Callable[..., None]] = Seam("_emit_lambda_logs", MinistackModule("services.lambda_svc"))
"""Writes a function's output to its log group, which it creates when there is none."""

log_groups: Table = MinistackModule("services.cloudwatch_logs").take("_log_groups")
"""The log groups, by their names."""

delete_rule: Seam[Operation] = Seam("_delete_rule", _eventbridge)
"""DeleteRule."""

_rule_key: Callable[[str | None, str], str] = _eventbridge.take("_rule_key")
_targets: Table = _eventbridge.take("_targets")


def has_targets(request: Record) -> bool:
    return bool(_targets.get(_rule_key(request.get("Name"), request.get("EventBusName", "default"))))
