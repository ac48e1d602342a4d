"""What holds for all tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent

LONGEST = (
    "test_demo.py",
    "test_by_hand.py",
    "test_faults.py",
    "bootstrap/test_preprocess.py",
    "bootstrap/test_cli.py",
    "trainer/test_training.py",
    "jobs/test_runners.py",
    "bootstrap/test_deploy.py",
    "jobs/test_faults.py",
    "bootstrap/test_destroy.py",
    "jobs/test_pipeline.py",
    "trainer/test_errors.py",
    "bootstrap/test_untold.py",
    "bootstrap/test_sweep.py",
    "bootstrap/test_teardown.py",
    "test_guard_deployed.py",
    "bootstrap/test_cli_embedded.py",
    "infra/test_app.py",
    "bootstrap/test_raising.py",
    "test_matrix.py",
    "infra/test_guard.py",
    "benchmarks/test_generated.py",
    "embedded/test_boot.py",
    "test_payload.py",
)
"""The files that take longest, the longest first (`--durations=50`): begun last, one of them keeps all from the end."""

# A shell has its background jobs ignore SIGINT, and they hand that on: what a test starts could not be interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Processes that test in parallel have it set; what they run would break its lines, although nobody looks.
os.environ.pop("COLUMNS", None)

# How long an example takes says how busy the machine is, and nothing of what is tested. What examples share of a
# fixture is a folder or a patch, which each of them uses anew.
settings.register_profile(
    "without a clock",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("without a clock")


HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """A command that a test or a fixture runs in this process has handlers of its own, which are none of others."""
    _restore_handlers()
    yield
    _restore_handlers()


def _restore_handlers() -> None:
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; what is not listed stays in its order."""
    places = {TESTS / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
