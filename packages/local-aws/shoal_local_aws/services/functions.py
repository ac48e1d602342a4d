"""Lets Lambda functions write logs only if their role has the permission.

A deleted log group is created again only if the function's role may create log groups. This matters for a function that
deletes its own stack, which includes its log group.
"""

from typing import Any

from shoal_local_aws.permissions.checks import is_allowed
from shoal_local_aws.seams import functions, requests
from shoal_local_aws.service import Record

_CREATE, _WRITE = "logs:CreateLogGroup", ("logs:CreateLogStream", "logs:PutLogEvents")


def install() -> None:
    """Make ministack check the role of a function before it writes the function's logs."""
    emit = functions.write_logs.now

    def emitted(function: Record, *rest: Any, **more: Any) -> None:
        configuration = function.get("config") or function
        name = configuration["FunctionName"]
        group = (configuration.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{name}"
        arn = f"arn:aws:logs:{requests.region()}:{requests.account()}:log-group:{group}:*"
        needed = _WRITE if group in functions.log_groups else (_CREATE, *_WRITE)
        # Belief: A function without the permission runs, but writes no logs. No check: it takes a function.
        if is_allowed(configuration["Role"], name, needed, arn):
            emit(function, *rest, **more)

    functions.write_logs.put(emitted)
