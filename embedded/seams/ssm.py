"""Systems Manager: commands that are sent to instances, and parameters."""

from collections.abc import Callable

from embedded.seams.lookup import MinistackModule, Operation, Record, Seam, Table
from embedded.seams.routing import Handler

_ssm = MinistackModule("services.ssm")

handle: Seam[Handler] = Seam("handle_request", _ssm)
"""Answers each request."""

commands: Table = _ssm.take("_commands")
"""The commands, by their ids; each has its `Invocations`, by the instances' ids."""

parameters: Table = _ssm.take("_parameters")
"""The parameters that somebody stored, by their names."""

public_parameter: Seam[Callable[[str], Record | None]] = Seam("_public_parameter", _ssm)
"""A parameter that AWS itself holds, by its name."""

send_command: Operation = _ssm.take("_send_command")
"""SendCommand."""

managed_instances: Seam[Callable[[], set[str]]] = Seam("_managed_instance_ids", _ssm)
"""The ids of the instances that a command can be sent to."""

targets: Seam[Callable[[Record], list[str]]] = Seam("_command_target_ids", _ssm)
"""The ids of the instances that a command is sent to."""

run: Seam[Callable[[str, str, list[str]], None]] = Seam("_finish_invocation", _ssm)
"""Runs a command on an instance, on a thread of its own: their ids, and the program with its arguments."""

roll_up: Callable[[Record], None] = _ssm.take("_refresh_command_status")
"""Set a command's status by those of its invocations."""
