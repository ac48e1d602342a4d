"""What faults cost a training on three hosts: each is made while the ranks train, and the run goes on by itself.

    python -m benchmarks faults [NAME...] [--epochs 12]    (as root, with openssh-server and iproute2)

The hosts are namespaces of this machine (lab.py), and write a checkpoint every six seconds. For each fault: the seconds
until somebody says so, and until the run has made the next step that it had not made before; the rows that were learnt
twice or never, as the rows and steps of the summary tell; the final loss; and what runs on the hosts once the command
has ended. Beside it, the seconds from the launch to the first step, and those of plain torchrun on the same hosts.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.lab import Lab, LabHost, lab
from benchmarks.record import Log
from benchmarks.rows import learnable_dataset

_HOSTS, _BATCH = 3, 512
_AWAY_SECONDS = 45.0
"""How long what comes back is away."""
_LONGEST_SECONDS = 420.0
_LOOK_SECONDS = 0.1


@dataclass
class Run:
    """A training whose command was typed, and what it has left so far."""

    lab: Lab
    data: Path
    output: Path
    epochs: int
    process: "subprocess.Popen[str] | None" = None

    def type_command(self) -> None:
        """Type it, perhaps again."""
        log = self.output.with_suffix(".log").open("a+")
        words = ["--hosts", self.lab.file, "--data", self.data, "--output", self.output, "--epochs", self.epochs]
        words += ["--threads", 1, "--seed", 3, "--global-batch", _BATCH, "--checkpoint-minutes", 0.1, "--json"]
        words += ["--balance", "off"]  # equal splits on equal hosts: what is learnt is then equal to the last bit
        words += [word for rank in range(_HOSTS) for word in ("--slow", f"{rank}:6")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bootstrap.cli.main", "train", *map(str, words)],
            env=self.lab.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

    @property
    def folder(self) -> Path | None:
        """Of its files in the shared folder."""
        found = sorted((self.lab.folder / "runs").glob("*"))
        return found[-1] if found else None

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """Of its record, as it is in the shared folder."""
        if (folder := self.folder) is None or not (folder / "record.jsonl").exists():
            return []
        lines, wanted = (folder / "record.jsonl").read_text().splitlines(), f'{{"kind": "{kind}"'
        return [json.loads(line) for line in lines if line.startswith(wanted) and line.endswith("}")]

    def step(self) -> int:
        """The latest of its record."""
        return max((int(line["step"]) for line in self.lines("step")), default=0)

    def attempts(self) -> int:
        """How many attempts there were."""
        return len(list(self.folder.glob("attempts/*.json"))) if self.folder else 0

    def last_host(self) -> LabHost:
        """The last one of the latest attempt; the first writes the results, which a full disk ends."""
        assert self.folder is not None
        latest = json.loads(max(self.folder.glob("attempts/*.json")).read_text())
        return next(host for host in self.lab.hosts if host.address == latest["members"][-1]["address"])

    def troubles(self) -> str:
        """What the hosts tell is wrong with them."""
        told = [json.loads(path.read_text()) for path in (self.lab.folder / "nodes").glob("*.run")]
        return " ".join(each["trouble"] for each in told)

    def until(self, holds: Callable[[], object], what: str) -> float:
        """Seconds until something holds. Ends the benchmark where it does not, or the command fails."""
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > _LONGEST_SECONDS or (self.process and self.process.poll()):
                said = self.output.with_suffix(".log").read_text()
                sys.exit(f"{what} did not happen in {time.monotonic() - began:.0f} s:\n{said[-3000:]}")
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - began

    def ended(self) -> dict[str, Any]:
        """Its summary, once the command has ended."""
        assert self.process is not None
        printed, _ = self.process.communicate(timeout=_LONGEST_SECONDS)
        if self.process.returncode:
            sys.exit(self.output.with_suffix(".log").read_text()[-3000:])
        found: dict[str, Any] = json.loads(printed)
        return found


@dataclass(frozen=True)
class Fault:
    """What is done to a run, and undone after a while."""

    do: Callable[[Run], None]
    undo: Callable[[Run], None] | None = None
    noticed: Callable[[Run], bool] | None = None
    """By default that there is another attempt, or that the ranks were started again, before the next step is made."""


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


def _kill_launcher(run: Run) -> None:
    assert run.process is not None
    run.process.kill()
    run.process.wait()
    run.type_command()


def _kill_hosts(run: Run) -> None:
    for host in run.lab.hosts:
        host.kill()


def _start_hosts(run: Run) -> None:
    for host in run.lab.hosts:
        host.start()
    assert run.process is not None
    run.process.wait()  # it has ended, as no host has answered
    run.type_command()


FAULTS: Mapping[str, Fault] = {
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
    "command killed and typed again": Fault(_kill_launcher),
    "all hosts killed, command typed again": Fault(_kill_hosts, _start_hosts),
}


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks faults", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FAULTS)} (default: all)")
    parser.add_argument(
        "--epochs", type=int, default=12, help="of each run, which takes minutes (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        parser.error("only root can make network namespaces; run this as root")
    if unknown := [name for name in options.names if name not in FAULTS]:
        parser.error(f"there is no fault '{unknown[0]}'; there are: {', '.join(FAULTS)}")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the hosts end with it
    log, found = Log("faults"), dict[str, dict[str, Any]]()
    with TemporaryDirectory() as folder:
        data = learnable_dataset(Path(folder))
        for name in dict.fromkeys(("none", *(options.names or FAULTS))):
            with lab(_HOSTS) as made:
                run = Run(made, data, made.root / "output", options.epochs)
                try:
                    found[name] = _measure(run, FAULTS[name])
                finally:
                    if run.process is not None:
                        run.process.kill()
                log.say(f"{name}: {found[name]}")
        first_step = {"shoal train --hosts": found["none"]["first step"]}
        with lab(_HOSTS) as made:
            first_step["torchrun"] = _torchrun(made, data)
    log.table(_HEADS, list(_rows(found)))
    log.say(f"seconds from launch to first step: {first_step}")
    log.keep({"options": vars(options), "found": found, "first step": first_step})


_HEADS = ("fault", "noticed, s", "next step, s", "rows twice or never", "loss less that without", "left running")


def _rows(found: Mapping[str, Mapping[str, Any]]) -> Iterator[list[str]]:
    undisturbed = found["none"]["loss"]
    for name, each in found.items():
        off = each["loss"] - undisturbed
        yield [
            name,
            f"{each['noticed']:.1f}" if each["noticed"] else "not",
            f"{each['next step']:.1f}",
            str(each["wrong rows"]),
            f"{off:+.1e}",
            str(each["left"]),
        ]


def _measure(run: Run, fault: Fault) -> dict[str, Any]:
    began = time.monotonic()
    run.type_command()
    run.until(run.step, "the first step")
    first = time.monotonic() - began
    run.until(lambda: run.lines("checkpoint") and run.attempts() == 1, "the first checkpoint")
    run.until(lambda: any(run.folder.glob("checkpoints/*")) if run.folder else False, "its copy")
    steps, attempts, starts = run.step(), run.attempts(), len(run.lines("start"))
    since, at = time.monotonic(), time.time()
    fault.do(run)
    again = fault.noticed or (lambda _: run.attempts() > attempts or len(run.lines("start")) > starts)
    noticed, goes_on, undone = 0.0, False, fault.undo is None

    def look() -> bool:
        nonlocal noticed, goes_on, undone
        now = time.monotonic() - since
        noticed = noticed or (now if again(run) else 0.0)
        goes_on = goes_on or run.step() > steps
        if not undone and now >= _AWAY_SECONDS:
            undone = True
            assert fault.undo is not None
            fault.undo(run)
        return goes_on and undone

    run.until(look, "the next step")
    summary = run.ended()
    time.sleep(2)
    lines = run.lines("step")
    before = max(line["step"] for line in lines if line["time"] <= at)
    next_step = min(line["time"] for line in lines if line["step"] > before and line["time"] > at) - at
    expected = run.epochs * -(-summary["rows"] // _BATCH)
    return {
        "first step": round(first, 1),
        "noticed": round(noticed, 1),
        "next step": round(next_step, 1),
        "wrong rows": abs(summary["rows_seen"] - run.epochs * summary["rows"]) + abs(summary["steps"] - expected),
        "loss": summary["log_loss"],
        "attempts": run.attempts(),
        "left": sum(len(host.processes("-m trainer ")) for host in run.lab.hosts),
        "seconds": round(time.monotonic() - began, 1),
    }


def _torchrun(made: Lab, data: Path) -> float:
    """Seconds from the launch of plain torchrun on each host to the first step of the same trainer."""
    output = made.root / "torchrun"
    trainer = ["-m", "trainer", f"--data={data}", f"--output={output}", "--threads=1", f"--global-batch={_BATCH}"]
    began, running = time.monotonic(), []
    for number, host in enumerate(made.hosts):
        launch = [f"--nnodes={_HOSTS}", f"--node-rank={number}", f"--master-addr={made.hosts[0].address}"]
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
