"""What the agents of many nodes ask of S3: their requests in an hour of training, with their price, and the launch.

    python -m benchmarks agents [--nodes 100] [--minutes 10]

The agents are the real ones, on a bucket in memory that counts, with a clock of their own and programs that do nothing:
staging takes 20 seconds, and then ranks train until the time is over. So the figures depend on no machine.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.played import PlayedBucket, agent, request
from benchmarks.record import Log
from bootstrap.agent.processes import State

_STAGE_SECONDS = 20.0
_PRICES = {"PUT": 0.005, "LIST": 0.005, "GET": 0.0004}
"""Dollars for 1,000 requests of S3's standard class in us-east-1 (aws.amazon.com/s3/pricing)."""


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
    bucket, now = PlayedBucket(), 0.0

    def clock() -> float:
        return now

    programs = [_Programs(clock) for _ in range(nodes)]
    agents = [agent(number, programs[number], bucket, clock, root) for number in range(nodes)]
    request(bucket, nodes)

    def second() -> None:
        nonlocal now
        for number, each in enumerate(agents):
            now = int(now) + number / nodes
            for _ in range(round(1 / each.pause)):
                each.tick()
            each.beat()
        now = int(now) + 1.0

    while not all(each.train() for each in programs):
        second()
    launch, before = now, bucket.requests.copy()
    for _ in range(60 * minutes):
        second()
    hour = bucket.requests - before
    return {"launch": launch, "an hour": {kind: round(hour[kind] * 60 / minutes) for kind in _PRICES}}
