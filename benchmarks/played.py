"""Agents of nodes, the real ones, on a bucket in memory that counts, with a clock of their own."""

import bisect
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from bootstrap.agent import documents
from bootstrap.agent.agent import Agent
from bootstrap.agent.channel import Document
from bootstrap.agent.documents import RequestQueue, RunRequest
from bootstrap.agent.machine import Machine
from bootstrap.agent.node import Node
from bootstrap.agent.processes import Processes

RUN, _LAUNCH = "demo.20260102T030405-0a1b", "0a1b2c3d"
_DATASET = f"s3://data/datasets/{'0a' * 16}/dataset.h5"


class PlayedBucket:
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


class _AtOnce(Executor):
    def submit(self, work: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        done.set_result(work(*arguments, **named))
        return done


def request(bucket: PlayedBucket, nodes: int) -> RunRequest:
    """Ask so many nodes for a training on a dataset."""
    wanted = RunRequest(run=RUN, token=_LAUNCH, trainers=nodes, share="efs", ready=True, options={}, dataset=_DATASET)
    bucket.write(documents.request_key("demo"), RequestQueue(runs=(wanted,)).to_json())
    return wanted


def agent(
    number: int,
    programs: Processes,
    bucket: PlayedBucket,
    clock: Callable[[], float],
    root: Path,
    notice: Callable[[], str] = lambda: "",
) -> Agent:
    """That of the node with this number, whose root is the folder of that name in `root`."""
    return Agent(
        "demo",
        Node(
            instance=f"i-{number:08x}",
            address=f"10.0.{number // 250}.{number % 250 + 1}",
            gpus=1,
            store="s3://data",
            machine=Machine(root=root / str(number)),
            processes=programs,
            channel=bucket,
            clock=clock,
            time=clock,
            notice=notice,
            power_off=lambda: None,
            pool=_AtOnce(),
            say=lambda _: None,
        ),
    )
