"""Runs a script on a node by Systems Manager's Run Command: without an open port, a key, or a local installation.

Run Command keeps only the first 24,000 characters of the output, so a script must write what matters to a file.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3

from bootstrap.aws.retry import retrying
from bootstrap.errors import ShoalError
from corpus.display import printable

if TYPE_CHECKING:
    from mypy_boto3_ssm.client import SSMClient

_UNFINISHED = ("Pending", "InProgress", "Delayed", "Cancelling")
_ONLINE_SECONDS = 300
_PAUSE_SECONDS = 0.5
_LONGEST_RUN_SECONDS = 172_800


@dataclass(frozen=True, kw_only=True)
class CommandState:
    """Whether a command has finished, and with success."""

    finished: bool
    succeeded: bool
    output: str
    """Its standard output and error, possibly cut."""

    @property
    def last_line(self) -> str:
        """The last line that the script itself printed, for messages."""
        lines = [line for line in self.output.splitlines() if not line.startswith("failed to run commands")]
        return printable(lines[-1]) if lines else "it printed nothing"


class NodeCommand:
    """A script that was started on a node."""

    def __init__(
        self, session: boto3.Session, instance_id: str, script: str, *, online_seconds: float = _ONLINE_SECONDS
    ) -> None:
        """Start it; waits up to `online_seconds` for the node's agent. Raises ShoalError when that stays offline."""
        self._client: SSMClient = session.client("ssm")
        self.instance_id = instance_id
        deadline = time.monotonic() + online_seconds
        while True:
            try:
                self._id = self._client.send_command(
                    InstanceIds=[instance_id],
                    DocumentName="AWS-RunShellScript",
                    Parameters={"commands": [script], "executionTimeout": [str(_LONGEST_RUN_SECONDS)]},
                )["Command"]["CommandId"]
                return
            except self._client.exceptions.InvalidInstanceId:
                if time.monotonic() > deadline:
                    raise ShoalError(
                        f"the agent of the node {instance_id} is not online in Systems Manager; "
                        "check that the node reaches the endpoints of its network"
                    ) from None
                time.sleep(_PAUSE_SECONDS)

    def state(self) -> CommandState:
        """Its state now."""
        try:
            found = self._client.get_command_invocation(CommandId=self._id, InstanceId=self.instance_id)
        except self._client.exceptions.InvocationDoesNotExist:  # for a moment after the start
            return CommandState(finished=False, succeeded=False, output="")
        return CommandState(
            finished=found["Status"] not in _UNFINISHED,
            succeeded=found["Status"] == "Success",
            output=f"{found['StandardOutputContent']}\n{found['StandardErrorContent']}".strip(),
        )

    def cancel(self) -> None:
        """Ask the node to end it."""
        self._client.cancel_command(CommandId=self._id, InstanceIds=[self.instance_id])

    def wait(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait until it has succeeded, and call `meanwhile` again and again. Raises ShoalError with its last line when
        it fails."""
        while not (now := retrying(self.state)).finished:
            meanwhile()
            time.sleep(_PAUSE_SECONDS)
        if not now.succeeded:
            raise ShoalError(f"a command failed on the node {self.instance_id}: {now.last_line}")
