"""What the all-reduce costs over a slow network: two ranks, each in a network namespace, with a link of some speed.

    python -m benchmarks link [DATASET] [--megabits 1000] [--global-batch 512]      (as root, on Linux with iproute2)

For the reference's model: all gradients dense, as DistributedDataParallel sends them (`--exchange ddp`); of the word
table only the rows of the words in the global batch; and those in half precision. First the all-reduce alone, which
both ranks enter together; then its share of a step in whole runs of the trainer.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.record import Log
from benchmarks.rows import learnable_dataset
from trainer.config import RANK_ENVIRONMENT

WAYS = {
    "dense": ["--exchange=ddp"],
    "dense, 16 bits": ["--exchange=ddp", "--gradient-bits=16"],
    "touched rows": ["--gradient-bits=32"],
    "touched rows, 16 bits": ["--gradient-bits=16"],
}
"""The ways to send gradients, with the trainer's options for them."""
_ALONE = {"dense": None, "touched rows": 32, "touched rows, 16 bits": 16}
"""Those that are also measured without a run, with the bits of a number; None: all gradients, dense."""
_STEP = ("reducing", "step")
_PORT = 29_401
_NETWORK = "198.18.70"  # of the range for benchmarks (RFC 2544)
_HOME = Path(__file__).parents[1]


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks link", description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", nargs="?", type=Path, help="by shoal preprocess (default: of generated reviews)")
    parser.add_argument("--megabits", type=int, default=1000, help="speed of the link a second (default: %(default)s)")
    parser.add_argument("--global-batch", type=int, default=512, help="rows of a step (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        parser.error("only root can make network namespaces; run this as root")
    log = Log("link")
    alone: dict[str, list[dict[str, float]]] = {way: [] for way in _ALONE}
    whole: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with TemporaryDirectory() as name:
        folder = Path(name)
        dataset = (options.dataset or learnable_dataset(folder)).resolve()
        with _linked(options.megabits) as hosts:
            for run in range(options.runs):
                for way, how in WAYS.items():
                    if way in _ALONE:
                        asked = {"data": str(dataset), "global_batch": options.global_batch, "seed": run}
                        program = ["-m", "benchmarks.all_reduce_rank", json.dumps({**asked, "bits": _ALONE[way]})]
                        alone[way].append(json.loads(_on(hosts, program)))
                    whole[way].append(_trained(hosts, dataset, folder / "model", how, options.global_batch))
                    log.say(f"{way}: {alone[way][-1] if way in _ALONE else ''} {whole[way][-1]}")
    rows = []
    for way, runs in whole.items():
        cells = ["", ""]
        if way in alone:
            cells = [f"{median(run['bytes'] for run in alone[way]) / 1e6:.2f}"]
            cells.append(f"{1000 * median(run['seconds'] for run in alone[way]):.1f}")
        rows.append([way, *cells, *(f"{1000 * median(run[what] for run in runs):.1f}" for what in _STEP)])
    log.table([f"{options.megabits} Mbit/s", "MB", "all-reduce alone, ms", "of a step, ms", "the step, ms"], rows)
    log.keep({"options": {**vars(options), "dataset": dataset.name}, "alone": alone, "whole": whole})


def _trained(hosts: Sequence[str], dataset: Path, output: Path, how: Sequence[str], batch: int) -> dict[str, float]:
    asked = [f"--data={dataset}", f"--output={output}", f"--global-batch={batch}", *how]
    _on(hosts, ["-m", "trainer", "--preset=reference", "--epochs=1", "--threads=1", "--force", *asked])
    summary: dict[str, Any] = json.loads((output / "summary.json").read_text())
    step = summary["seconds"] / summary["steps"]
    return {"reducing": summary["lost"]["communication"] * step, "step": step, "share": summary["share_of_ideal"]}


def _on(hosts: Sequence[str], program: Sequence[str]) -> str:
    """Run a program as one rank on each host; returns what the ranks printed."""
    running = []
    for rank, host in enumerate(hosts):
        torchrun = ["-m", "trainer.launch", f"--nnodes={len(hosts)}", f"--node-rank={rank}"]
        torchrun += [f"--master-addr={_NETWORK}.1", f"--master-port={_PORT}", "--nproc-per-node=1"]
        running.append(
            subprocess.Popen(
                ["ip", "netns", "exec", host, sys.executable, *torchrun, *program],
                env={**os.environ, **RANK_ENVIRONMENT, "GLOO_SOCKET_IFNAME": host},
                cwd=_HOME,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    said = [each.communicate() for each in running]
    for each, (_, errors) in zip(running, said, strict=True):
        if each.returncode:
            sys.exit(errors)
    return "".join(out for out, _ in said)


@contextmanager
def _linked(megabits: int) -> Iterator[list[str]]:
    """Make two hosts and a link between them; a host and its network device have the same name."""
    hosts = [f"shoal-link-{number}" for number in (1, 2)]
    for host in hosts:
        subprocess.run(["ip", "netns", "delete", host], capture_output=True, check=False)
    try:
        for host in hosts:
            _ip("netns", "add", host)
        first, second = hosts
        _ip("-n", first, "link", "add", first, "type", "veth", "peer", "name", second, "netns", second)
        for number, host in enumerate(hosts, 1):
            _ip("-n", host, "address", "add", f"{_NETWORK}.{number}/24", "dev", host)
            for device in ("lo", host):
                _ip("-n", host, "link", "set", device, "up")
            limit = ["rate", f"{megabits}mbit", "burst", "256kb", "latency", "100ms"]
            subprocess.run(
                ["ip", "netns", "exec", host, "tc", "qdisc", "add", "dev", host, "root", "tbf", *limit], check=True
            )
        yield hosts
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "delete", host], capture_output=True, check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
