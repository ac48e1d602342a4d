"""Systems Manager: parameters, and commands on instances."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Operation, PatchPoint, Record, Table

_ssm = MinistackModule("services.ssm")

value: PatchPoint[Callable[..., Any]] = PatchPoint("resolve_parameter_value", _ssm)
"""Returns the value of a parameter that a service reads for a template. Arguments: name or ARN, and more."""

public_parameter: PatchPoint[Callable[[str], Record | None]] = PatchPoint("_public_parameter", _ssm)
"""Returns a public parameter of AWS by its name."""

commands: Table = _ssm.take("_commands")
"""Records of Run Command by command id, each with its `Invocations` by instance id."""

STDOUT_CHARACTERS: int = _ssm.take("_STDOUT_LIMIT")
STDERR_CHARACTERS: int = _ssm.take("_STDERR_LIMIT")

now: Callable[[], str] = _ssm.take("_now_iso")
"""Returns the current time as text."""

refresh: Callable[[Record], None] = _ssm.take("_refresh_command_status")
"""Sets the status of a command from those of its invocations."""

send_command: PatchPoint[Operation] = PatchPoint("_send_command", _ssm)
"""SendCommand: stores a command and starts its invocations."""

run_invocation: PatchPoint[Callable[[str, str, list[str]], None]] = PatchPoint("_finish_invocation", _ssm)
"""Runs a command on an instance, on a thread of its own. Arguments: command id, instance id, program with arguments."""

_handle: PatchPoint[Callable[..., Awaitable[Any]]] = PatchPoint("handle_request", _ssm)


def add_operation(name: str, operation: Callable[[Record], Answer]) -> None:
    """Add an operation that ministack lacks."""
    handle = _handle.now

    async def handled(method: str, path: str, headers: Record, body: bytes, query: Record) -> Any:
        if headers.get("x-amz-target", "").rpartition(".")[2] == name:
            return operation(json.loads(body or b"{}"))
        return await handle(method, path, headers, body, query)

    _handle.put(handled)
