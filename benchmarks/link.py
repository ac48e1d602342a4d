"""What each exchange costs over a slow network: two ranks, each in a network namespace, with a link of some speed.

    python -m benchmarks link [DATASET] [--megabits 1000] [--runs 3]      (as root, on Linux with iproute2)

Gradients are added up by the trainer's own exchange (`rows`) or by DistributedDataParallel (`ddp`), in 32 and 16 bits.
Of the reference's model most parameters are word vectors, of which a batch touches a part: `rows` sends that part, ddp
all of them. The wide model has few words, all of which are in each batch, so both send the same: `rows` after the
computing, ddp during the backward pass. First the all-reduce alone, which both ranks enter together; then its share of
a step in whole runs of the trainer.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.record import Log
from benchmarks.rows import write_rows
from trainer.config import RANK_ENVIRONMENT

WAYS = {"rows": ("rows", 32), "rows, 16 bits": ("rows", 16), "ddp": ("ddp", 32), "ddp, 16 bits": ("ddp", 16)}
"""`--exchange` and `--gradient-bits`; the first is what the others are compared with."""


class _Model(NamedTuple):
    global_batch: int
    options: dict[str, Any]
    """In place of the preset's."""


_MODELS = {
    "reference": _Model(512, {}),
    "wide, few words": _Model(64, {"hidden": 256}),
}
_ROWS, _WIDE_ROWS, _WIDE_WORDS = 512 * 32, 64 * 40, 200
_CELLS = (("bytes", 1e-6, ".2f"), ("alone", 1e3, ".1f"), ("reducing", 1e3, ".1f"), ("step", 1e3, ".1f"))
"""Figures, the factor for the table, and their digits there."""
_PORT = 29_401
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_AS_HOST = f'''own=$(mktemp); cat /proc/sys/kernel/random/uuid > "$own"
mount --bind "$own" {_BOOT_ID}; rm "$own"; exec "$@"'''
_NETWORK = "198.18.70"  # of the range for benchmarks (RFC 2544)
_HOME = Path(__file__).parents[1]


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks link", description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", nargs="?", type=Path, help="by shoal preprocess (default: random words)")
    parser.add_argument("--megabits", type=int, default=1000, help="speed of the link a second (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each case, interleaved (default: %(default)s)")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        parser.error("only root can make network namespaces; run this as root")
    log = Log("link")
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        datasets = ((options.dataset or folder / "rows.h5").resolve(), folder / "few-words.h5")
        if options.dataset is None:
            write_rows(datasets[0], _ROWS)
        write_rows(datasets[1], _WIDE_ROWS, vocabulary=_WIDE_WORDS)
        with linked(options.megabits) as hosts:
            for run in range(options.runs):
                for (model, asked), data in zip(_MODELS.items(), datasets, strict=True):
                    for way in WAYS:
                        figures = _alone(hosts, data, asked, way, run)
                        figures |= _trained(hosts, data, folder / "model", asked, way)
                        found.setdefault(model, {}).setdefault(way, []).append(figures)
                        log.say(f"{model}, {way}: {figures}")
    log.table(
        [f"{options.megabits} Mbit/s", *_HEADS], [row for model, ways in found.items() for row in _rows(model, ways)]
    )
    log.keep({"options": {**vars(options), "dataset": datasets[0].name}, "found": found})


_HEADS = ("exchange", "MB", "all-reduce alone, ms", "of a step, ms", "the step, ms", "step to that of rows")


def _rows(model: str, ways: Mapping[str, Sequence[Mapping[str, float]]]) -> Iterator[list[str]]:
    """The lines of a model in the table: medians of the runs, and of the runs' ratios."""
    first = ways[next(iter(WAYS))]
    for way, runs in ways.items():
        cells = [f"{scale * median(run[what] for run in runs):{form}}" for what, scale, form in _CELLS]
        ratios = [run["step"] / own["step"] for run, own in zip(runs, first, strict=True)]
        yield [model, way, *cells, f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"]


def _alone(hosts: Sequence[str], data: Path, model: _Model, way: str, seed: int) -> dict[str, float]:
    exchange, bits = WAYS[way]
    asked = {"data": str(data), "global_batch": model.global_batch, "options": model.options, "seed": seed}
    program = ["-m", "benchmarks.all_reduce_rank", json.dumps({**asked, "exchange": exchange, "bits": bits})]
    told: dict[str, float] = json.loads(run_on_hosts(hosts, program))
    return told


def _trained(hosts: Sequence[str], data: Path, output: Path, model: _Model, way: str) -> dict[str, float]:
    exchange, bits = WAYS[way]
    asked = [f"--data={data}", f"--output={output}", f"--global-batch={model.global_batch}"]
    asked += [f"--exchange={exchange}", f"--gradient-bits={bits}"]
    asked += [f"--{name}={value}" for name, value in model.options.items()]
    run_on_hosts(hosts, ["-m", "trainer", "--preset=reference", "--epochs=1", "--threads=1", "--force", *asked])
    summary: dict[str, Any] = json.loads((output / "summary.json").read_text())
    step = summary["seconds"] / summary["steps"]
    return {"reducing": summary["lost"]["communication"] * step, "step": step, "share": summary["share_of_ideal"]}


def run_on_hosts(hosts: Sequence[str], program: Sequence[str]) -> str:
    """Run a program as one rank on each host; returns what the ranks printed.

    Each host has a number of its own by which the kernel names its start: ranks with the same number count as those of
    one machine.
    """
    running = []
    for rank, host in enumerate(hosts):
        torchrun = ["-m", "trainer.launch", f"--nnodes={len(hosts)}", f"--node-rank={rank}"]
        torchrun += [f"--master-addr={_NETWORK}.1", f"--master-port={_PORT}", "--nproc-per-node=1"]
        running.append(
            subprocess.Popen(
                ["ip", "netns", "exec", host, "sh", "-c", _AS_HOST, host, sys.executable, *torchrun, *program],
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
def linked(megabits: int) -> Iterator[list[str]]:
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
