"""What faults cost a training on three nodes: each is made while the ranks train, and the run goes on by itself.

    python -m benchmarks faults [NAME...] [--epochs 12]    (as root, with openssh-server, sshfs and iproute2)

The nodes are hosts that are namespaces of this machine (lab.py), or those of an embedded AWS (faults_on_nodes.py), and
write a checkpoint every six seconds. For each fault: the seconds until somebody says so, and until the run has made the
next step that it had not made before; the longest time without such a step since; the rows that were learnt twice or
never, as the rows and steps of the summary tell; the final loss; and what runs on the nodes once the command has ended.
Besides, how many runs the command makes that is killed at random moments and typed again; and the seconds from the
launch to the first step, and those of plain torchrun on the same hosts.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import faults_on_nodes
from benchmarks.fault_runs import (
    BATCH,
    HEADS,
    RANKS,
    Fault,
    Run,
    kill_and_type_again,
    measure,
    rows,
)
from benchmarks.lab import Lab, LabHost, lab
from benchmarks.record import Log
from benchmarks.rows import learnable_dataset
from bootstrap.agent.channel import SharedFolder

_LOOK_SECONDS = 0.1


class HostsRun(Run):
    """A training on hosts of the lab."""

    def __init__(self, made: Lab, data: Path, epochs: int) -> None:
        self.lab, self._data = made, data
        super().__init__(SharedFolder(made.folder), made.root / "output", epochs)

    @property
    def where(self) -> Sequence[object]:
        """As in `Run`."""
        return ["--hosts", self.lab.file, "--data", self._data]

    @property
    def environment(self) -> Mapping[str, str]:
        """As in `Run`."""
        return self.lab.environment

    def left(self) -> int:
        """As in `Run`."""
        return sum(len(host.processes("-m trainer ")) for host in self.lab.hosts)

    @property
    def server(self) -> LabHost:
        """Of the shared folder."""
        assert self.lab.server is not None
        return self.lab.server

    def last_host(self) -> LabHost:
        """The last one of the latest attempt; the first writes the results, which a full disk ends."""
        address = self.attempts()[-1]["members"][-1]["address"]
        return next(host for host in self.lab.hosts if host.address == address)

    def is_silent(self) -> bool:
        """Whether the command has ended because no host answers it, or a host tells that the folder does not."""
        return "has waited" in self.troubles() or (self.process is not None and self.process.poll() is not None)


def _kill(processes: Sequence[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)


def _ranks(host: LabHost) -> list[int]:
    return [each for each in host.processes("-m trainer ") if "RANK=" in _environment(each)]


def _environment(process: int) -> str:
    try:
        return Path(f"/proc/{process}/environ").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def _kill_hosts(run: HostsRun) -> None:
    for host in run.lab.hosts:
        host.kill()


def _start_hosts(run: HostsRun) -> None:
    for host in run.lab.hosts:
        host.start()
    run.type_again()  # it has ended, as no host has answered


FAULTS: Mapping[str, Fault[HostsRun]] = {
    "none": Fault(lambda _: None),
    "rank killed": Fault(lambda run: _kill(_ranks(run.lab.hosts[1]))),
    "agent killed": Fault(lambda run: _kill(run.lab.hosts[1].processes("agent.host"))),
    "first host gone": Fault(lambda run: run.lab.hosts[0].kill(), lambda run: run.lab.hosts[0].start()),
    "last host gone": Fault(lambda run: run.lab.hosts[2].kill(), lambda run: run.lab.hosts[2].start()),
    "host unplugged and back": Fault(
        lambda run: run.lab.hosts[1].cut(off=True), lambda run: run.lab.hosts[1].cut(off=False)
    ),
    "link at 100 Mbit/s": Fault(lambda run: run.lab.hosts[1].limit(100), lambda run: run.lab.hosts[1].limit(None)),
    "disk full": Fault(
        lambda run: run.last_host().fill_disk(full=True),
        lambda run: run.last_host().fill_disk(full=False),
        lambda run: "full" in run.troubles(),
    ),
    "share frozen for 60 s": Fault(
        lambda run: run.server.freeze(on=True),
        lambda run: run.server.freeze(on=False),
        HostsRun.is_silent,
        away=60.0,
        served=True,
    ),
    "share's server gone and back": Fault(
        lambda run: run.server.kill(), lambda run: run.server.start(), HostsRun.is_silent, served=True
    ),
    "command killed and typed again": Fault(kill_and_type_again),
    "command killed at random moments": Fault(kill_and_type_again, again_and_again=True),
    "all hosts killed, command typed again": Fault(_kill_hosts, _start_hosts),
}
_ALL = (*FAULTS, *faults_on_nodes.FAULTS)


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks faults", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(_ALL)} (default: all)")
    parser.add_argument(
        "--epochs", type=int, default=12, help="of each run, which takes minutes (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        parser.error("only root can make network namespaces; run this as root")
    if unknown := [name for name in options.names if name not in _ALL]:
        parser.error(f"there is no fault '{unknown[0]}'; there are: {', '.join(_ALL)}")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the hosts end with it
    log, names, found = Log("faults"), options.names or _ALL, dict[str, Any]()
    with TemporaryDirectory() as folder:
        data = learnable_dataset(Path(folder))
        if on_hosts := [name for name in names if name in FAULTS]:
            found["hosts"] = _on_hosts(dict.fromkeys(("none", *on_hosts)), data, options.epochs, log)
        if on_nodes := [name for name in names if name in faults_on_nodes.FAULTS]:
            found["nodes"] = faults_on_nodes.on_nodes(on_nodes, data, options.epochs, log)
        if on_hosts:
            found["first step"] = {"shoal train --hosts": found["hosts"]["none"]["first step"]}
            with lab(RANKS) as made:
                found["first step"]["torchrun"] = _torchrun(made, data)
            log.say(f"seconds from launch to first step: {found['first step']}")
    log.keep({"options": vars(options), "found": found})


def _on_hosts(names: Iterable[str], data: Path, epochs: int, log: Log) -> dict[str, dict[str, Any]]:
    found = dict[str, dict[str, Any]]()
    for name in names:
        with lab(RANKS, served=FAULTS[name].served) as made:
            run = HostsRun(made, data, epochs)
            try:
                found[name] = measure(run, FAULTS[name])
            finally:
                run.kill_command()
            log.say(f"{name}: {found[name]}")
    log.table(HEADS, list(rows(found, "none")))
    return found


def _torchrun(made: Lab, data: Path) -> float:
    """Seconds from the launch of plain torchrun on each host to the first step of the same trainer."""
    output = made.root / "torchrun"
    trainer = ["-m", "trainer", f"--data={data}", f"--output={output}", "--threads=1", f"--global-batch={BATCH}"]
    began, running = time.monotonic(), []
    for number, host in enumerate(made.hosts):
        launch = [f"--nnodes={RANKS}", f"--node-rank={number}", f"--master-addr={made.hosts[0].address}"]
        launch += ["--master-port=29500", "--nproc-per-node=1"]
        variables = {**os.environ, "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())}
        words = ["ip", "netns", "exec", host.name, sys.executable, "-m", "torch.distributed.run", *launch]
        command = [*words, *trainer, "--epochs=1", "--trust-network", "--slow=0:6"]
        running.append(subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
    record = output / "record.jsonl"
    while not (record.exists() and '"kind": "step"' in record.read_text()):
        if any(each.poll() for each in running):
            sys.exit("torchrun failed")
        time.sleep(_LOOK_SECONDS)
    seconds = time.monotonic() - began
    for each in running:
        each.terminate()
        each.wait()
    return round(seconds, 1)
