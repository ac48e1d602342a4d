"""pytest plugin that measures the cost of each test file, with the processes that it starts.

The summary shows wall time, CPU seconds and the load of the machine. With `--suite NAME` it shows the suite's budget
(`cpu_budgets` in pyproject.toml), and with `--costs N` the N most expensive files. A process that outlives its parent
is not counted, because no process of the tests waits for it.

The files of a suite run in the order of their recorded times, the longest first: a long file that starts last would
delay the end. `--write-times` records them in times.json.
"""

import json
import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TIMES = Path(__file__).with_name("times.json")
COLLECTION, REST = "(collection)", "(start and end of workers)"
SHORTEST = 2.0
"""Wall time in seconds from which a file is recorded."""


def cpu_seconds() -> float:
    """Return the user and system seconds of this process and of the children that it has waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Costs:
    """Costs of the tests that one process runs. The first process of a parallel run adds up the costs of all."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._suite = config.getoption("suite")
        self._cpu, self._wall = Counter[str](), Counter[str]()
        self._started, self._load = time.monotonic(), os.getloadavg()[0]

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        before = cpu_seconds()
        yield
        self._cpu[COLLECTION] += cpu_seconds() - before

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        times = json.loads(TIMES.read_text()).get(self._suite, {})
        items.sort(key=lambda item: -times.get(_file(item), 0))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        cpu, wall = cpu_seconds(), time.monotonic()
        result = yield
        self._cpu[_file(item)] += cpu_seconds() - cpu
        self._wall[_file(item)] += time.monotonic() - wall
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the costs of a worker."""
        cpu, wall = getattr(node, "workeroutput", {}).get("costs", ({}, {}))
        self._cpu.update(cpu)
        self._wall.update(wall)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if hasattr(self._config, "workeroutput"):
            rest = cpu_seconds() - self._cpu.total()
            self._config.workeroutput["costs"] = ({**self._cpu, REST: rest}, dict(self._wall))
        elif self._config.getoption("write_times"):
            longest = {file: round(seconds) for file, seconds in self._wall.most_common() if seconds >= SHORTEST}
            TIMES.write_text(json.dumps(json.loads(TIMES.read_text()) | {self._suite: longest}, indent=1) + "\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what the run cost."""
        most = self._config.getoption("costs")
        if most:
            terminalreporter.section(f"CPU seconds, the {most} most expensive files")
            for name, seconds in self._cpu.most_common(most):
                terminalreporter.write_line(f"{seconds:8.1f}  {name}")
        wall, cpu, load = time.monotonic() - self._started, cpu_seconds(), os.getloadavg()[0]
        terminalreporter.write_line(
            f"wall time {wall:.0f} s, CPU {cpu:.0f} s with children, "
            f"load {self._load:.1f} at the start and {load:.1f} at the end"
        )
        if self._suite:
            budget = float(dict(line.split() for line in self._config.getini("cpu_budgets"))[self._suite])
            rest = f"exceeded by {cpu - budget:.0f}" if cpu > budget else f"{budget - cpu:.0f} left"
            terminalreporter.write_line(f"budget of the {self._suite} suite: {budget:.0f} CPU s, {rest}")


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("cpu_budgets", "lines with a suite and its budget in CPU seconds", "linelist")
    parser.addoption("--suite", help="name of the suite, for its budget and for the order of its files")
    parser.addoption("--costs", type=int, default=0, metavar="N", help="list the N files with the most CPU seconds")
    parser.addoption("--write-times", action="store_true", help="record the time of each file of the suite")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Costs(config))
