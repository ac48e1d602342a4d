"""pytest plugin that counts CPU seconds: the cost of each test file, with the processes that it starts.

The summary shows wall time, CPU seconds and the load of the machine. With `--suite NAME` it shows the suite's budget
(`cpu_budgets` in pyproject.toml), and with `--costs N` the N most expensive files. A process that outlives its parent
is not counted, because no process of the tests waits for it.
"""

import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

COLLECTION, REST = "(collection)", "(start and end of workers)"


def cpu_seconds() -> float:
    """Return the user and system seconds of this process and of the children that it has waited for."""
    usages = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class CpuSeconds:
    """Costs of the tests that one process runs. The first process of a parallel run adds up the costs of all."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.costs: Counter[str] = Counter()
        self.workers = 0.0
        self.started = time.monotonic()
        self.load = os.getloadavg()[0]

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        before = cpu_seconds()
        yield
        self.costs[COLLECTION] += cpu_seconds() - before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = cpu_seconds()
        result = yield
        self.costs[item.nodeid.partition("::")[0]] += cpu_seconds() - before
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over the costs of a worker."""
        costs = getattr(node, "workeroutput", {}).get("cpu_seconds", {})
        self.costs.update(costs)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        if hasattr(self.config, "workeroutput"):
            rest = cpu_seconds() - sum(self.costs.values())
            self.config.workeroutput["cpu_seconds"] = {**self.costs, REST: rest}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what the run cost."""
        most = self.config.getoption("costs")
        if most:
            terminalreporter.section(f"CPU seconds, the {most} most expensive files")
            for name, seconds in self.costs.most_common(most):
                terminalreporter.write_line(f"{seconds:8.1f}  {name}")
        wall, total, load = time.monotonic() - self.started, cpu_seconds(), os.getloadavg()[0]
        terminalreporter.write_line(
            f"wall time {wall:.0f} s, CPU {total:.0f} s with children, "
            f"load {self.load:.1f} at the start and {load:.1f} at the end"
        )
        suite = self.config.getoption("suite")
        if suite:
            budget = float(dict(line.split() for line in self.config.getini("cpu_budgets"))[suite])
            rest = f"exceeded by {total - budget:.0f}" if total > budget else f"{budget - total:.0f} left"
            terminalreporter.write_line(f"budget of the {suite} suite: {budget:.0f} CPU s, {rest}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("cpu_budgets", "lines with a suite and its budget in CPU seconds", "linelist")
    parser.addoption("--suite", help="the suite whose budget the summary shows")
    parser.addoption("--costs", type=int, default=0, metavar="N", help="list the N files with the most CPU seconds")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuSeconds(config))
