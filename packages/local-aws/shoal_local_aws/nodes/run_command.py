"""Emulates Run Command of Systems Manager: shell scripts that SendCommand starts on instances with the agent.

ministack stores the commands. Sources, read 2026-11-30: AWS Systems Manager API Reference, "SendCommand",
"GetCommandInvocation" and "ListCommandInvocations" (also botocore's model); AWS's document AWS-RunShellScript (default
and maximum of `executionTimeout`: boto/boto3 issues 654 and 2558). The message for an instance without an agent is
quoted in gravitational/teleport issue 24176.
"""

import os
import signal
import subprocess
from typing import Any

from shoal_local_aws.nodes.instances import machine_of
from shoal_local_aws.nodes.metadata import role_of
from shoal_local_aws.permissions.checks import is_allowed
from shoal_local_aws.seams import ec2, requests, ssm
from shoal_local_aws.service import Operation, Record, RefusedError, answering, json_operation

_DOCUMENT = "AWS-RunShellScript"
_FIELDS = ("DocumentName", "InstanceIds", "Parameters", "Comment", "TimeoutSeconds")
_PARAMETERS = ("commands", "executionTimeout")
_TIMEOUT, _MOST_SECONDS = "3600", 172_800
_LISTED_CHARACTERS = 2500
"""Characters of output in an answer of ListCommandInvocations (AWS Systems Manager User Guide, "Run Command")."""
_NEEDED = ("ssm:UpdateInstanceInformation", "ssmmessages:CreateControlChannel")
"""Requests of the agent, without which it cannot register or receive a command. From version 3.3.40.0 it does not need
`ec2messages` (AWS Systems Manager User Guide, "Improve the security of EC2 instances by using VPC endpoints")."""


def install() -> None:
    """Make ministack run commands on emulated instances, and refuse what Systems Manager refuses."""
    ec2.has_agent.put(_has_agent)
    ssm.run_invocation.put(_run)
    ssm.send_command.wrap(_checked)
    ssm.add_operation("ListCommandInvocations", json_operation(_list))


def _has_agent(identifier: str) -> bool:
    """Return whether the agent of a running instance can register: its role and its network allow this."""
    record, role = ec2.instances.get(identifier) or {}, role_of(identifier)
    running = record.get("State", {}).get("Name") == "running"
    return running and bool(role) and is_allowed(role, identifier, _NEEDED, "*")


def _checked(send: Operation) -> Operation:
    def checked(request: Record) -> Any:
        _check(request)
        return send(request)

    return answering(requests.json_error, checked)


def _check(request: Record) -> None:
    """Raise RefusedError if Systems Manager refuses a SendCommand request, or if the request is not emulated."""
    if others := sorted(set(request) - {*_FIELDS}):
        raise RefusedError("ValidationException", f"The embedded AWS does not support {others[0]} of SendCommand.")
    if str(request.get("DocumentName")).rpartition("/")[2] != _DOCUMENT:
        raise RefusedError("InvalidDocument", f"The embedded AWS has only the document {_DOCUMENT}.")
    given = request.get("Parameters") or {}
    if unknown := sorted(set(given) - {*_PARAMETERS}):
        message = f"The embedded AWS does not support the parameter {unknown[0]} of {_DOCUMENT}."
        raise RefusedError("InvalidParameters", message)
    # Rule: A missing parameter is refused. Source: botocore ssm SendCommand.
    if not given.get("commands"):
        raise RefusedError("InvalidParameters", f"{_DOCUMENT} requires the parameter commands.")
    limit = _parameter(given, "executionTimeout", _TIMEOUT)
    # Rule: A script may run for at most 48 hours. Source: boto/boto3#2558.
    if not limit.isdecimal() or not 0 < int(limit) <= _MOST_SECONDS:
        raise RefusedError("InvalidParameters", f"executionTimeout must be from 1 to {_MOST_SECONDS} seconds.")


def _run(command: str, identifier: str, arguments: list[str]) -> None:
    """Run a command's script on an instance, and record its result. After the termination of the instance, nothing
    reports a result."""
    record, machine = ssm.commands[command], machine_of(identifier)
    invocation, given = record["Invocations"][identifier], record["Parameters"]
    invocation.update(Status="InProgress", StatusDetails="In Progress", ExecutionStartDateTime=ssm.now())
    if machine is None:
        return
    script = machine.start(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    code, stdout, stderr, details = _result(script, int(_parameter(given, "executionTimeout", _TIMEOUT)))
    if machine_of(identifier) is None:
        return
    invocation.update(
        ResponseCode=code,
        StandardOutputContent=stdout.decode("utf-8", "replace")[: ssm.STDOUT_CHARACTERS],
        StandardErrorContent=stderr.decode("utf-8", "replace")[: ssm.STDERR_CHARACTERS],
        ExecutionEndDateTime=ssm.now(),
        StatusDetails=details,
    )
    invocation["Status"] = "TimedOut" if "Timed" in details else details  # last, because clients wait for it
    ssm.refresh(record)


def _result(script: "subprocess.Popen[bytes]", seconds: int) -> tuple[int, bytes, bytes, str]:
    """Wait for a script. Return its exit status, standard output, standard error, and Run Command's status."""
    try:
        stdout, stderr = script.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(script.pid, signal.SIGKILL)
        stdout, stderr = script.communicate()
        return script.returncode, stdout, stderr, "Execution Timed Out"
    return script.returncode, stdout, stderr, "Failed" if script.returncode else "Success"


def _list(request: Record) -> Record:
    """Return the invocations of ListCommandInvocations: of one command, one instance, or all."""
    asked = {name: request[name] for name in ("CommandId", "InstanceId") if name in request}
    if others := sorted(set(request) - {*asked, "Details"}):
        message = f"The embedded AWS does not support {others[0]} of ListCommandInvocations."
        raise RefusedError("ValidationException", message)
    found = [
        _listed(record, invocation, details=bool(request.get("Details")))
        for record in ssm.commands.values()
        for invocation in record["Invocations"].values()
        if all(invocation[name] == value for name, value in asked.items())
    ]
    return {"CommandInvocations": sorted(found, key=lambda each: -float(each["RequestedDateTime"]))}


def _listed(record: Record, invocation: Record, *, details: bool) -> Record:
    output = f"{invocation['StandardOutputContent']}{invocation['StandardErrorContent']}"[:_LISTED_CHARACTERS]
    plugin = {"Name": "aws:runShellScript", "Output": output}
    plugin |= {name: invocation[name] for name in ("Status", "StatusDetails", "ResponseCode")}
    return {
        **invocation,
        "RequestedDateTime": record["RequestedDateTime"],
        "CommandPlugins": [plugin] if details else [],
    }


def _parameter(given: Record, name: str, default: str) -> str:
    """Return the only value of a parameter of the document, or `default` if it is missing."""
    return str((given.get(name) or [default])[0])
