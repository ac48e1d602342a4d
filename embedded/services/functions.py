"""Lets functions write their logs as on AWS.

A log group that was deleted is created again only if the function's role may create log groups. This matters for a
function that deletes its own stack, and so its log group.
"""

from fnmatch import fnmatchcase
from typing import Any

from embedded.seams import functions
from embedded.service import Record

_CREATE = "logs:CreateLogGroup"


def install() -> None:
    """Check the function's role before its logs are written."""
    emit = functions.write_logs.now

    def emitted(function: Record, *rest: Any, **more: Any) -> None:
        configuration = function.get("config") or function
        group = (configuration.get("LoggingConfig") or {}).get("LogGroup")
        group = group or f"/aws/lambda/{configuration['FunctionName']}"
        if group in functions.log_groups or _may_create_groups(configuration["Role"]):
            emit(function, *rest, **more)

    functions.write_logs.put(emitted)


def _may_create_groups(role: str) -> bool:
    effects = {
        statement.effect
        for statement in functions.statements(role)
        if any(fnmatchcase(_CREATE.lower(), pattern.lower()) for pattern in statement.actions)
    }
    return "Allow" in effects and "Deny" not in effects
