"""Emulates Run Command: a script sent to an instance runs there as a process, and can be waited for and cancelled.

ministack keeps commands and invocations. This module runs them on the emulated machines, limits their time, cancels
them, and refuses unknown documents. As on AWS the output appears when the command has ended, cut to 24,000 and 8,000
characters; the whole output goes to the command's bucket. Only a node's agent reports the end of a command, as on AWS:
the command of a node that died stays in progress until its time limit.
"""

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import IO, Any

from embedded.nodes import instances
from embedded.nodes.machine import Machine
from embedded.processes import kill_marked, terminate_group
from embedded.seams import ec2, requests, ssm
from embedded.service import Record, RefusedError, json_operation, target_operation, upload_log

_DOCUMENT = "AWS-RunShellScript"
_PLUGIN = "awsrunShellScript"
_MARK = "SSM_COMMAND_ID"
_DEFAULT_SECONDS = 3600.0
_CANCELLED = ("Cancelled", "Cancelled")
_TIMED_OUT = ("TimedOut", "ExecutionTimedOut")
_GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL
_STDOUT_CHARACTERS, _STDERR_CHARACTERS = 24_000, 8_000
_MachineOf = Callable[[str], Machine | None]
_documents = requests.regional_table()
_cancelled: dict[str, threading.Event] = {}


def install(others: Callable[[], Mapping[str, Machine]]) -> None:
    """Make ministack's Run Command use the emulated instances, and the machines of `others` by instance id."""

    def machine_of(instance: str) -> Machine | None:
        return instances.machine_of(instance) or others().get(instance)

    ssm.managed_instances.put(
        lambda: {identifier for identifier in ec2.instances if instances.machine_of(identifier)} | set(others())
    )
    ssm.run.put(partial(_run, machine_of))
    ssm.targets.put(_targets)
    operations = {
        "SendCommand": _send_command,
        "CancelCommand": json_operation(_cancel_command),
        "ListCommandInvocations": json_operation(_list_invocations),
        "CreateDocument": json_operation(_create_document),
        "DescribeDocument": json_operation(_describe_document),
        "GetDocument": json_operation(_get_document),
        "ListDocuments": json_operation(_list_documents),
        "UpdateDocument": json_operation(_update_document),
        "DeleteDocument": json_operation(_delete_document),
    }
    handle = ssm.handle.now

    async def handle_request(method: str, path: str, headers: Record, body: bytes, query: Record) -> Any:
        operation = operations.get(target_operation(headers))
        if operation is None:
            return await handle(method, path, headers, body, query)
        return operation(json.loads(body or b"{}"))

    ssm.handle.put(handle_request)


# Run Command


def _send_command(request: Record) -> Any:
    refused = json_operation(_check_document)(request)
    return refused if refused[0] >= 300 else ssm.send_command(request)


def _check_document(request: Record) -> Record:
    name = request.get("DocumentName", "")
    if name != _DOCUMENT:
        raise RefusedError("InvalidDocument", f"The embedded AWS supports document {_DOCUMENT}, not {name}.")
    return {}


def _targets(request: Record) -> list[str]:
    """The target instances of a command: by id, or by tags (`tag:KEY`), of which all must match."""
    chosen = list(request.get("InstanceIds") or [])
    requested = {target["Key"]: target["Values"] for target in request.get("Targets") or []}
    chosen += requested.pop("InstanceIds", [])
    if requested:
        chosen += [
            identifier
            for identifier in ec2.instances
            if instances.machine_of(identifier) is not None
            and all(_tag(identifier, key.removeprefix("tag:")) in values for key, values in requested.items())
        ]
    return chosen


def _tag(identifier: str, key: str) -> str | None:
    return next((tag["Value"] for tag in ec2.tags.get(identifier) or [] if tag["Key"] == key), None)


def _run(machine_of: _MachineOf, command_id: str, instance: str, argv: list[str]) -> None:
    """Run one invocation, and write its result to its record. Write the status last, because clients poll it.

    `machine_of` returns the machine of a running EC2 instance or cluster node.
    """
    command = ssm.commands[command_id]
    invocation = command["Invocations"][instance]
    invocation.update(StatusDetails="InProgress", Status="InProgress", ExecutionStartDateTime=requests.now())
    ssm.roll_up(command)
    began = time.monotonic()
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        status, details, code = _execute(machine_of, command, instance, argv[-1], stdout, stderr)
        outputs = [_content(stdout), _content(stderr)]
    _upload(command, instance, outputs)
    invocation.update(
        ResponseCode=code,
        StandardOutputContent=outputs[0].decode(errors="replace")[:_STDOUT_CHARACTERS],
        StandardErrorContent=outputs[1].decode(errors="replace")[:_STDERR_CHARACTERS],
        ExecutionElapsedTime=f"PT{time.monotonic() - began:.3f}S",
        ExecutionEndDateTime=requests.now(),
        StatusDetails=details,
    )
    invocation["Status"] = status
    _roll_up(command)


def _execute(
    machine_of: _MachineOf, command: Record, instance: str, script: str, stdout: IO[bytes], stderr: IO[bytes]
) -> tuple[str, str, int]:
    """Run a script on an instance; returns the invocation's status, its details, and the exit code (-1: none)."""
    mark = f"{command['CommandId']}/{instance}"
    cancelled = _cancelled.setdefault(command["CommandId"], threading.Event())
    until = time.monotonic() + float((command["Parameters"].get("executionTimeout") or [_DEFAULT_SECONDS])[0])
    machine = machine_of(instance)
    try:
        if machine is None:
            raise FileNotFoundError(instance)
        # sh is bash in its POSIX mode on Amazon Linux
        argv = ["bash", "--posix", "-c", script]
        process = machine.start(argv, stdout=stdout, stderr=stderr, extra={_MARK: mark})
    except FileNotFoundError:  # the instance was terminated after the command was accepted
        return "Failed", "Undeliverable", -1
    while process.poll() is None:
        if not cancelled.wait(0.05) and time.monotonic() < until:
            continue
        if machine_of(instance) is None:
            break
        terminate_group(process, _GRACE_SECONDS)
        kill_marked(_MARK, mark)
        process.wait()
        return *(_CANCELLED if cancelled.is_set() else _TIMED_OUT), -1
    if machine_of(instance) is None:
        process.wait()
        time.sleep(max(0.0, until - time.monotonic()))
        for output in (stdout, stderr):  # the agent ended before it could send the output
            output.truncate(0)
        return *_TIMED_OUT, -1
    if not process.returncode:
        return "Success", "Success", 0
    stderr.seek(0, os.SEEK_END)
    stderr.write(f"failed to run commands: exit status {process.returncode}".encode())
    return "Failed", "Failed", process.returncode


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _upload(command: Record, instance: str, outputs: list[bytes]) -> None:
    bucket = command["OutputS3BucketName"]
    if not bucket:
        return
    place = [command["OutputS3KeyPrefix"], command["CommandId"], instance, _PLUGIN, f"0.{_PLUGIN}"]
    for name, content in zip(("stdout", "stderr"), outputs, strict=True):
        if content:
            upload_log(bucket, "/".join([*filter(None, place), name]), content)


def _roll_up(command: Record) -> None:
    ssm.roll_up(command)
    states = {invocation["Status"] for invocation in command["Invocations"].values()}
    for state in ("TimedOut", "Cancelled"):
        if state in states and command["Status"] == "Success":
            command["Status"] = command["StatusDetails"] = state


def _cancel_command(request: Record) -> Record:
    command = ssm.commands.get(request["CommandId"])
    if command is None:
        raise RefusedError("InvalidCommandId", f"Command {request['CommandId']} does not exist.")
    _cancelled.setdefault(request["CommandId"], threading.Event()).set()
    return {}


def _list_invocations(request: Record) -> Record:
    return {"CommandInvocations": list(_invocations(request))}


def _invocations(request: Record) -> Iterator[Record]:
    for command in ssm.commands.values():
        for instance, invocation in command["Invocations"].items():
            if request.get("CommandId", command["CommandId"]) != command["CommandId"]:
                continue
            if request.get("InstanceId", instance) != instance:
                continue
            summary = {name: invocation[name] for name in ("CommandId", "InstanceId", "DocumentName", "Comment")}
            state = {name: invocation[name] for name in ("Status", "StatusDetails")}
            plugin = {"Name": "aws:runShellScript", "ResponseCode": invocation["ResponseCode"], **state}
            plugin["Output"] = invocation["StandardOutputContent"]
            details = {"CommandPlugins": [plugin]} if request.get("Details") else {}
            yield {**summary, **state, **details, "RequestedDateTime": command["RequestedDateTime"]}


# Documents


def _document(name: str) -> Record:
    if name not in _documents:
        raise RefusedError("InvalidDocument", f"Document with name {name} does not exist.")
    return _documents[name]


def _description(document: Record) -> Record:
    return {name: value for name, value in document.items() if name != "Content"}


def _create_document(request: Record) -> Record:
    name = request["Name"]
    if name in _documents:
        raise RefusedError("DocumentAlreadyExists", f"Document with same name {name} already exists")
    _documents[name] = {
        "Name": name,
        "Content": request["Content"],
        "DocumentType": request.get("DocumentType", "Command"),
        "DocumentFormat": request.get("DocumentFormat", "JSON"),
        "DocumentVersion": "1",
        "Owner": requests.account(),
        "Status": "Active",
        "Tags": request.get("Tags", []),
    }
    return {"DocumentDescription": _description(_documents[name])}


def _describe_document(request: Record) -> Record:
    return {"Document": _description(_document(request["Name"]))}


def _get_document(request: Record) -> Record:
    document = _document(request["Name"])
    names = ("Name", "Content", "DocumentType", "DocumentFormat", "DocumentVersion", "Status")
    return {name: document[name] for name in names}


def _list_documents(request: Record) -> Record:
    del request
    names = ("Name", "Owner", "DocumentType", "DocumentFormat", "DocumentVersion", "Tags")
    return {"DocumentIdentifiers": [{name: entry[name] for name in names} for entry in _documents.values()]}


def _update_document(request: Record) -> Record:
    document = _document(request["Name"])
    document.update(Content=request["Content"], DocumentVersion=str(int(document["DocumentVersion"]) + 1))
    return {"DocumentDescription": _description(document)}


def _delete_document(request: Record) -> Record:
    _document(request["Name"])
    del _documents[request["Name"]]
    return {}
