"""What the agents of many nodes ask of S3: their requests in an hour of training, with their price, and the launch.

    python -m benchmarks agents [--nodes 100] [--minutes 10]

The agents are the real ones, on a bucket in memory that counts, with a clock of their own and programs that do nothing:
staging takes 20 seconds, and then ranks train until the time is over. So the figures depend on no machine.
"""

import argparse
import bisect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.record import Log
from bootstrap.agent import documents
from bootstrap.agent.agent import Agent
from bootstrap.agent.channel import Document
from bootstrap.agent.documents import RequestQueue, RunRequest
from bootstrap.agent.machine import Machine
from bootstrap.agent.node_run import Node
from bootstrap.agent.processes import State

_STAGE_SECONDS = 20.0
_RUN, _TOKEN = "demo.20260102T030405-0a1b", "0a1b2c3d"
_DATASET = f"s3://data/datasets/{'0a' * 16}/dataset.h5"
_PRICES = {"PUT": 0.005, "LIST": 0.005, "GET": 0.0004}
"""Dollars for 1,000 requests of S3's standard class in us-east-1 (aws.amazon.com/s3/pricing)."""


class _Bucket:
    """A bucket in memory, which counts what S3 would charge."""

    def __init__(self) -> None:
        self.requests = Counter[str]()
        self._documents: dict[str, Document] = {}
        self._keys: list[str] = []

    def read(self, key: str, known: Document | None = None) -> Document | None:
        self.requests["GET"] += 1
        found = self._documents.get(key)
        return known if found and known and found.tag == known.tag else found

    def write(self, key: str, text: str) -> None:
        self.requests["PUT"] += 1
        if key not in self._documents:
            bisect.insort(self._keys, key)
        self._documents[key] = Document(text, str(self.requests["PUT"]))

    def write_new(self, key: str, text: str) -> bool:
        if key in self._documents:
            self.requests["PUT"] += 1
            return False
        self.write(key, text)
        return True

    def list(self, prefix: str) -> Mapping[str, str]:
        first, last = (bisect.bisect_left(self._keys, each) for each in (prefix, prefix + "\uffff"))
        self.requests["LIST"] += 1 + (last - first) // 1000
        return {key: self._documents[key].tag for key in self._keys[first:last]}

    def get(self, key: str, path: Path) -> None:
        raise AssertionError(f"nothing is copied: {key}, {path}")

    def put(self, path: Path, key: str) -> None:  # noqa: ARG002
        self.requests["PUT"] += 1

    def remove(self, key: str) -> None:
        del self._documents[key]


class _Programs:
    """Programs that do nothing: staging ends after a while, and ranks go on."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._began = clock, dict[str, float]()

    def start(self, name: str, program: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        del program, log, environment
        self._began[name] = self._clock()

    def state(self, name: str) -> State:
        began = self._began.get(name)
        if began is None:
            return None
        ended = name.endswith("/stage") and self._clock() - began >= _STAGE_SECONDS
        return 0 if ended else "running"

    def stop(self, name: str, *, kill: bool = False) -> bool:
        raise AssertionError(f"nothing is stopped: {name}, {kill}")

    def names(self) -> list[str]:
        return list(self._began)

    def forget(self, name: str) -> None:
        del self._began[name]

    def train(self) -> bool:
        """Whether ranks have begun."""
        return any(name.endswith("/train") for name in self._began)


class _AtOnce(Executor):
    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        done.set_result(work(*arguments, **named))
        return done


def main(arguments: Sequence[str]) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks agents", description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=100, help="how many train (default: %(default)s)")
    parser.add_argument("--minutes", type=int, default=10, help="of training that are played (default: %(default)s)")
    options = parser.parse_args(arguments)
    log = Log("agents")
    with TemporaryDirectory() as folder:
        found = _play(Path(folder), options.nodes, options.minutes)
    dollars = {kind: _PRICES[kind] * count / 1000 for kind, count in found["an hour"].items()}
    log.table(
        ["requests an hour", "number", "a node", "dollars"],
        [
            *(
                [kind, f"{count:,}", f"{count / options.nodes:,.0f}", f"{dollars[kind]:.2f}"]
                for kind, count in found["an hour"].items()
            ),
            ["all", f"{sum(found['an hour'].values()):,}", "", f"{sum(dollars.values()):.2f}"],
        ],
    )
    log.say(
        f"{options.nodes} nodes: ranks begin {found['launch']:.0f} s after the request; staging takes the first node "
        f"{_STAGE_SECONDS:.0f} s, and then all others as long"
    )
    log.keep({"options": vars(options), "found": found, "dollars an hour": dollars})


def _play(root: Path, nodes: int, minutes: int) -> dict[str, Any]:
    bucket, now = _Bucket(), 0.0

    def clock() -> float:
        return now

    programs = [_Programs(clock) for _ in range(nodes)]
    agents = [
        Agent(
            "demo",
            Node(
                instance=f"i-{number:08x}",
                address=f"10.0.{number // 250}.{number % 250 + 1}",
                gpus=1,
                store="s3://data",
                machine=Machine(root=root / str(number)),
                processes=programs[number],
                channel=bucket,
                clock=clock,
                time=clock,
                notice=lambda: "",
                pool=_AtOnce(),
                say=lambda _: None,
            ),
        )
        for number in range(nodes)
    ]
    request = RunRequest(run=_RUN, token=_TOKEN, trainers=nodes, share="efs", ready=True, options={}, dataset=_DATASET)
    bucket.write(documents.request_key("demo"), RequestQueue(runs=(request,)).to_json())

    def second() -> None:
        nonlocal now
        for number, agent in enumerate(agents):
            now = int(now) + number / nodes
            agent.tick()
            agent.beat()
        now = int(now) + 1.0

    while not all(each.train() for each in programs):
        second()
    launch, before = now, bucket.requests.copy()
    for _ in range(60 * minutes):
        second()
    hour = bucket.requests - before
    return {"launch": launch, "an hour": {kind: round(hour[kind] * 60 / minutes) for kind in _PRICES}}
