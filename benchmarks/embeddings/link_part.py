"""What ranks on two hosts send each other, and what it costs them, over a link of some speed.

    python -m benchmarks embeddings link [TEXT...] [--megabits 1000] [--runs 3]    (as root, on Linux with iproute2)

Two ranks, each in a network namespace, and one alone, learn from the same text. In `sync` each rank sends the other the
gradients of the words that its own rows touch; in `average` how far its words have moved in K steps; in `async` each
rank keeps half of the words, and the other pulls and pushes those that it needs for K steps (a parameter server).
Bytes are those that a rank sends for a step of its own, as the trainer counts them. Words a second are those of
learning alone.
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
from typing import NamedTuple

from benchmarks.embeddings.texts import Text, add_options, write_texts
from benchmarks.fasttext import shoal
from benchmarks.record import Log
from bootstrap.training.sources.local_readers import FOLDER
from trainer.config import RANK_ENVIRONMENT
from trainer.output.run_files import SUMMARY

_MODES = ("average:20", "average:50", "async:20", "async:50")
WAYS: Mapping[str, tuple[str, ...]] = {"sync": (), **{mode: (f"--mode={mode}",) for mode in _MODES}}
_ALONE = "one rank"
_SIZES, _ROWS = (50, 200), (3, 23, 64)
"""Rows: two of experiments/embeddings-50.yaml, and more."""
_MEGABYTES = 12
_PORT = 29_401
_AS_HOST = '''own=$(mktemp); cat /proc/sys/kernel/random/uuid > "$own"
mount --bind "$own" /proc/sys/kernel/random/boot_id; rm "$own"; exec "$@"'''
_NETWORK = "198.18.70"  # of the range for benchmarks (RFC 2544)
_HOME = Path(__file__).parents[2]


class _Measured(NamedTuple):
    words_per_second: float
    bytes_a_step: float
    """That a rank sends for a step of its own."""


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks embeddings link", description=__doc__.partition("\n")[0]
    )
    add_options(parser)
    parser.set_defaults(megabytes=_MEGABYTES)
    parser.add_argument("--megabits", type=int, default=1000, help="speed of the link a second (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each way, in turns (default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=_SIZES, help="of the vectors (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="+", default=_ROWS, help="of a rank's step (default: %(default)s)")
    parser.add_argument("--ways", nargs="+", choices=tuple(WAYS), default=tuple(WAYS), help="(default: all)")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        parser.error("only root can make network namespaces; run this as root")
    log = Log("embeddings-link")
    found: dict[str, dict[str, list[_Measured]]] = {}
    with TemporaryDirectory() as name, linked(options.megabits) as hosts:
        folder = Path(name)
        (text, *_) = write_texts(options, folder).values()
        stream = _read(text, folder)
        for run in range(options.runs):
            for size in options.sizes:
                for rows in options.rows:
                    runs = found.setdefault(f"{size}, {rows}", {})
                    for way in (_ALONE, *options.ways):
                        asked = [f"--embedding={size}", f"--rank-batch={rows}", f"--seed={run}", *WAYS.get(way, ())]
                        output = folder / way / f"{size}" / f"{rows}"
                        measured = _measured(hosts[:1] if way == _ALONE else hosts, stream, output, asked)
                        runs.setdefault(way, []).append(measured)
                        log.say(f"{size}, {rows}, {way}: {measured}")
    _tabulate(log, options, found)
    log.keep({"options": vars(options), "words": text.words, "runs": found})


def _read(text: Text, folder: Path) -> Path:
    """The text as the trainer reads it."""
    shoal.train(folder / "first", f"--input={text.path}", "--tokeniser=spaces", "--epochs=1", verb="embed")
    return (folder / "first" / FOLDER).rename(folder / FOLDER)


def _measured(hosts: Sequence[str], stream: Path, output: Path, asked: Sequence[str]) -> _Measured:
    output.parent.mkdir(parents=True, exist_ok=True)
    run_on_hosts(
        hosts,
        [
            *("-m", "trainer", "--model=skipgram", f"--data={stream}", f"--output={output}", "--epochs=2"),
            *("--threads=1", "--force", *asked),
        ],
    )
    summary = json.loads((output / SUMMARY).read_text())
    speed = summary["rows_seen"] * summary["words_a_row"] / summary["times"]["training"]
    return _Measured(speed, summary["bytes_a_step"])


def _tabulate(log: Log, options: argparse.Namespace, found: Mapping[str, Mapping[str, Sequence[_Measured]]]) -> None:
    rows = []
    for setting, ways in found.items():
        for way, runs in ways.items():
            ratios = [run.words_per_second / one.words_per_second for run, one in zip(runs, ways[_ALONE], strict=True)]
            rows.append(
                [
                    setting,
                    way,
                    f"{median(run.bytes_a_step for run in runs) / 1e3:,.1f}",
                    f"{median(run.words_per_second for run in runs):,.0f}",
                    f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                ]
            )
    heads = ("mode", "kB a step", "words a second", "to one rank")
    log.table([f"{options.megabits} Mbit/s: dimensions, rows of a rank's step", *heads], rows)


def run_on_hosts(hosts: Sequence[str], program: Sequence[str]) -> None:
    """Run a program as one rank on each host.

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
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    said = [each.communicate() for each in running]
    for each, (_, errors) in zip(running, said, strict=True):
        if each.returncode:
            sys.exit(errors)


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
