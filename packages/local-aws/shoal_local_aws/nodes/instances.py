"""Emulates EC2 instances. Each instance is an emulated machine with its own loopback address.

To boot an instance, its user data is executed. Its termination kills all of its processes and deletes its folder, but
keeps its console log in the emulator's `logs`. ministack stores the records. All emulators on a computer share the
loopback addresses, so each emulator starts with a different address.
"""

import base64
import binascii
import hashlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import SilentBoot, StaysPending
from shoal_local_aws.nodes import guardduty, launch_templates
from shoal_local_aws.nodes.machine import Machine, Machines
from shoal_local_aws.seams import ec2, requests
from shoal_local_aws.service import Record, RefusedError, answering, parameter

_LOOK_SECONDS = 0.1
_machines_of: dict[str, Machine] = {}


def machine_of(identifier: str) -> Machine | None:
    """Return the machine of an instance that is not terminated, or None."""
    return _machines_of.get(identifier)


def zones_of_placement_group(name: str) -> set[str]:
    """Return the zones in which a placement group has instances."""
    return {
        record["Placement"]["AvailabilityZone"]
        for record in ec2.instances.values()
        if record["Placement"].get("GroupName") == name and record["State"]["Name"] != "terminated"
    }


def at_work() -> list[Record]:
    """Return the records of all instances in the region that are not terminated."""
    return [each for each in ec2.instances.values() if each["State"]["Name"] in ("pending", "running")]


class InstanceRunner:
    """Starts and terminates instances. `running` is called with the id of each instance that starts to run."""

    def __init__(self, machines: Machines, running: Callable[[str], None], faults: Faults) -> None:
        self._machines = machines
        self._running = running
        self._faults = faults
        self._started = 0
        self._lock = threading.Lock()

    def start(self, record: Record) -> None:
        """Create the machine of a new instance, and boot it in the background."""
        guardduty.watch(record, self._faults)
        address = self._next_address()
        name = f"ip-{address.replace('.', '-')}.ec2.internal"
        record.update(PrivateIpAddress=address, PrivateDnsName=name, PublicIpAddress="", PublicDnsName="")
        record["State"] = {"Code": 0, "Name": "pending"}
        identifier = record["InstanceId"]
        _machines_of[identifier] = self._machines.make(
            "nodes",
            identifier,
            {
                "EC2_INSTANCE_ID": identifier,
                "EC2_LOCAL_IPV4": address,
                "GLOO_SOCKET_IFNAME": "lo",
                # NCCL allows each GPU only once in a process group. So nodes on one computer must not share a GPU, and
                # use CPU cores instead.
                "CUDA_VISIBLE_DEVICES": "",
            },
            core=_core(self._started),
            profile=(record.get("IamInstanceProfile") or {}).get("Arn", ""),
        )
        requests.spawn_background(self._boot, record, _machines_of[identifier], thread_name=f"boot-{identifier}")

    def _next_address(self) -> str:
        with self._lock:
            self._started += 1
            place = int(hashlib.sha256(str(self._machines.folder).encode()).hexdigest(), 16) + self._started
        return f"127.1.{place // 254 % 256}.{place % 254 + 1}"

    def _boot(self, record: Record, machine: Machine) -> None:
        identifier = record["InstanceId"]
        self._machines.give_interpreter(machine.root / "opt" / "pytorch" / "bin" / "python")
        console = self.console(identifier)
        (machine.root / "var" / "log" / "cloud-init-output.log").symlink_to(console)
        while record["State"]["Name"] == "pending" and self._faults.find(StaysPending):
            time.sleep(_LOOK_SECONDS)
        with self._lock:
            if record["State"]["Name"] != "pending":  # the instance was terminated before it ran
                return
            self._machines.put_on_network(record["PrivateIpAddress"], machine)
            record["State"] = {"Code": 16, "Name": "running"}
            self._running(identifier)
            script = machine.root / "var" / "lib" / "cloud" / "user-data"
            script.parent.mkdir(parents=True)
            script.write_bytes(_decoded(record.get("UserData", "")))
            with console.open("ab") as log:
                runs = script.stat().st_size and not self._faults.find(SilentBoot)
                boot = machine.start(["bash", str(script)], stdout=log) if runs else None
        if boot is not None:
            code = boot.wait()
            with console.open("ab") as log:
                log.write(f"user data ended with exit code {code}\n".encode())

    def console(self, identifier: str) -> Path:
        return self._machines.logs / f"{identifier}.log"

    def terminate(self, identifier: str) -> None:
        """Terminate an instance: kill its processes, and delete its folder and its volumes."""
        record = ec2.instances.get(identifier)
        with self._lock:
            machine = _machines_of.pop(identifier, None)
            if record is not None:
                ec2.end_instance(identifier)
                for mapping in record["BlockDeviceMappings"]:
                    ec2.volumes.pop(mapping["Ebs"]["VolumeId"], None)
        if machine is not None:
            self._machines.take_off_network(machine.environment["EC2_LOCAL_IPV4"])
            machine.kill()
            self._machines.discard(machine)


def _core(number: int) -> int:
    """Return the CPU core for the instance with this number. If all instances used all cores, their ranks would wait
    for each other."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return cores[number % len(cores)]


def _decoded(user_data: str) -> bytes:
    try:
        return base64.b64decode(user_data, validate=True)
    except binascii.Error:
        return user_data.encode()


def install(nodes: InstanceRunner, terminate_instance: Callable[[str], None]) -> None:
    """Make ministack's instances run on emulated machines. `terminate_instance` lets a group replace an instance."""
    run, terminate = ec2.operations.now("RunInstances"), ec2.operations.now("TerminateInstances")

    def run_instances(parameters: Record) -> Any:
        _check_launch(parameters)
        before = set(ec2.instances)
        answer = run(parameters)
        for identifier in set(ec2.instances) - before:
            nodes.start(ec2.instances[identifier])
        return answer

    def terminate_instances(parameters: Record) -> Any:
        answer = terminate(parameters)
        if answer[0] < 300:
            for identifier in ec2.list_parameter(parameters, "InstanceId"):
                terminate_instance(identifier)
        return answer

    def console_output(parameters: Record) -> Any:
        identifier = parameter(parameters, "InstanceId")
        if identifier not in ec2.instances:
            # Rule: Requests for an unknown instance are refused. Source: "Error codes for the Amazon EC2 API".
            return ec2.error("InvalidInstanceID.NotFound", f"The instance ID '{identifier}' does not exist")
        path = nodes.console(identifier)
        # Belief: EC2 keeps the last 64 KB of the console output. No check: it takes an instance.
        text = path.read_bytes()[-65536:] if path.exists() else b""
        output = base64.b64encode(text).decode()
        return ec2.answer(
            200, "GetConsoleOutputResponse", f"<instanceId>{identifier}</instanceId><output>{output}</output>"
        )

    ec2.instance_xml.wrap(_described)
    ec2.operations.put(
        RunInstances=answering(ec2.error, run_instances),
        TerminateInstances=terminate_instances,
        GetConsoleOutput=console_output,
    )


def _check_launch(parameters: Record) -> None:
    """Raise RefusedError if EC2 would refuse a RunInstances request, or if the request is not emulated."""
    if "DryRun" in parameters or any(name.startswith("LaunchTemplate.") for name in parameters):
        message = "The embedded AWS supports neither dry runs nor launch templates in RunInstances."
        raise RefusedError("UnsupportedOperation", message)
    launch_templates.require_image_id(parameter(parameters, "ImageId"))
    subnet = parameter(parameters, "SubnetId")
    # Rule: An unknown subnet is refused. Source: "Error codes for the Amazon EC2 API".
    if subnet and subnet not in ec2.subnets:
        raise RefusedError("InvalidSubnetID.NotFound", f"The subnet ID '{subnet}' does not exist")


def _described(render: Callable[[Record], str]) -> Callable[[Record], str]:
    """Make `render` add an instance's market to the XML, because ministack omits it."""

    def rendered(record: Record) -> str:
        text, market = render(record), record.get("InstanceLifecycle")
        lifecycle = f"<instanceLifecycle>{market}</instanceLifecycle>" if market else ""
        return text.replace("<hypervisor>", f"{lifecycle}<hypervisor>", 1)

    return rendered
