"""Functions write their logs as on AWS: a log group that is gone comes back only if the function may create one.

Easy to get wrong is the last round of a function that deletes its own stack: its log group has gone before it ends.
"""

from typing import Any

from ministack.core import iam_evaluator
from ministack.services import cloudwatch_logs, lambda_svc

from embedded.service import Record

_CREATE = "logs:CreateLogGroup"


def install() -> None:
    """Look at the function's role before its logs are written."""
    emit = lambda_svc._emit_lambda_logs

    def emitted(function: Record, *rest: Any, **more: Any) -> None:
        configuration = function.get("config") or function
        group = (configuration.get("LoggingConfig") or {}).get("LogGroup")
        group = group or f"/aws/lambda/{configuration['FunctionName']}"
        if group in cloudwatch_logs._log_groups or _may_create_groups(configuration["Role"]):
            emit(function, *rest, **more)

    lambda_svc._emit_lambda_logs = emitted


def _may_create_groups(role: str) -> bool:
    policies = iam_evaluator._gather_role_policies(role.rpartition("/")[2], role.split(":")[4])
    effects = {
        statement.effect
        for policy in policies
        for statement in policy
        if any(iam_evaluator.fnmatch_iam(_CREATE, pattern) for pattern in statement.actions)
    }
    return "Allow" in effects and "Deny" not in effects
