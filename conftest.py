"""Fixtures and settings of all tests."""

import functools
import os
import signal
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import botocore.client
import botocore.hooks
import botocore.session
import botocore.useragent
import pytest
from hypothesis import HealthCheck, settings
from shoal_local_aws.aws import EmbeddedAws
from tests.local_aws.accounts import running_aws

from bootstrap.aws.cdk import WHEELS

pytest_plugins = ["tests.cpu_seconds", "tests.messages"]

ROOT = Path(__file__).parent

LONGEST = (
    "tests/test_demo.py",
    "tests/test_pages.py",
    "tests/test_pages_about_deployments.py",
    "tests/corpus/reading/test_fuzz.py",
    "tests/test_matrix.py",
    "tests/tools/test_acceptance_aws.py",
    "tests/bootstrap/training/test_word_runs.py",
    "tests/jobs/test_runners.py",
    "tests/jobs/test_pipeline.py",
    "tests/bootstrap/training/test_lost_on_nodes.py",
    "tests/bootstrap/training/test_words_on_nodes.py",
    "tests/bootstrap/training/test_remote.py",
    "tests/bootstrap/hosts/test_on_hosts.py",
    "tests/bootstrap/hosts/test_on_bucket.py",
    "tests/bootstrap/training/test_left_to_itself.py",
    "tests/test_embeddings_life.py",
    "tests/test_faults.py",
    "tests/infra/test_guard.py",
    "tests/bootstrap/nodes/test_scale_up.py",
    "tests/bootstrap/cli/test_cli.py",
    "tests/bootstrap/cli/deployments/test_destroy.py",
    "tests/infra/test_cleanup.py",
    "tests/benchmarks/test_gpu.py",
    "tests/experiments/report/test_report.py",
    "tests/trainer/distributed/test_exchange.py",
    "tests/bootstrap/cli/learning/test_dataset.py",
    "tests/bootstrap/removal/test_teardown.py",
    "tests/bootstrap/removal/test_unverified.py",
    "tests/bootstrap/preprocessing/test_cluster.py",
    "tests/bootstrap/cli/deployments/test_embedded.py",
    "tests/bootstrap/agent/test_attempts.py",
    "tests/infra/test_app.py",
    "tests/trainer/embeddings/test_training.py",
    "tests/bootstrap/training/test_node_launch.py",
    "tests/trainer/test_errors.py",
    "tests/bootstrap/cli/test_output_streams.py",
    "tests/trainer/test_training.py",
    "tests/bootstrap/lifecycle/test_preflight.py",
    "tests/bootstrap/removal/test_sweep.py",
    "tests/bootstrap/nodes/test_boot_on_node.py",
    "tests/bootstrap/lifecycle/test_plan.py",
    "tests/bootstrap/cli/test_signals.py",
    "tests/bootstrap/preprocessing/test_preprocess.py",
    "tests/jobs/test_faults.py",
    "tests/trainer/test_resume.py",
    "tests/trainer/test_launch.py",
    "tests/jobs/test_pipeline_work.py",
    "tests/bootstrap/test_first_boot.py",
    "tests/bootstrap/removal/test_ownership.py",
    "tests/bootstrap/training/test_outage.py",
    "tests/corpus/reading/test_ranges.py",
    "packages/local-aws/tests/nodes/test_instances.py",
)
"""Files with the slowest tests, the slowest first (`--durations=50`). If one started last, it would delay the end."""

# Processes that tests start find this checkout and the tests' helpers from any folder.
_PLACES = [ROOT, *(ROOT / "packages" / name for name in ("balance", "guard", "local-aws"))]
os.environ["PYTHONPATH"] = os.pathsep.join(map(str, _PLACES))

# A shell starts background jobs with SIGINT ignored, and children inherit that. Processes under test must be
# interruptible.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Processes of parallel tests have this variable set. Commands under test would then break their lines.
os.environ.pop("COLUMNS", None)

# Example times show the load of the machine, not a property of the code. Examples share only folders and patches of a
# fixture, which each example sets again.
settings.register_profile(
    "without a clock",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("without a clock")

# Each boto3 session would read the service descriptions again, one megabyte for EC2 alone. Each client would build its
# methods again, 700 for EC2, and each request the parts of its user agent and the names of its events.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)
botocore.useragent.sanitize_user_agent_string_component = functools.cache(
    botocore.useragent.sanitize_user_agent_string_component
)


def _once(owner: type, name: str) -> None:
    """Let a method compute its result once for each name of a service or event, for all objects of a class."""
    method, results = getattr(owner, name), dict[Any, Any]()

    def cached(own: Any, subject: Any, *more: Any) -> Any:
        key = (getattr(subject, "service_name", subject), *more)
        if key not in results:
            results[key] = method(own, subject, *more)
        return copy(results[key])

    setattr(owner, name, cached)


_once(botocore.client.ClientCreator, "_load_service_model")
_once(botocore.client.ClientCreator, "_create_methods")
_once(botocore.hooks.EventAliaser, "_alias_event_name")

HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Restore signal handlers after a test or fixture: commands under test install their own."""
    _restore_handlers()
    yield
    _restore_handlers()


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    """Start an embedded AWS for the tests of one file. Clients in this process and commands that it starts use it."""
    with running_aws(tmp_path_factory.mktemp("aws"), WHEELS) as running:
        yield running


def _restore_handlers() -> None:
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first; other files keep their order."""
    places = {ROOT / name: place for place, name in enumerate(LONGEST)}
    gone = [str(path) for path in places if not path.exists()]
    if gone:
        raise pytest.UsageError(f"conftest.py lists files that do not exist: {', '.join(gone)}")
    items.sort(key=lambda item: places.get(item.path, len(places)))
