"""What holds for all tests."""

import functools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import botocore.session
import pytest
from hypothesis import HealthCheck, settings
from shoal_local_aws.aws import EmbeddedAws

from tests.aws import asked_aws

TESTS = Path(__file__).parent

LONGEST = (
    "test_demo.py",
    "corpus/reading/test_fuzz.py",
    "test_matrix.py",
    "tools/test_acceptance_aws.py",
    "bootstrap/training/test_word_runs.py",
    "jobs/test_runners.py",
    "jobs/test_pipeline.py",
    "bootstrap/training/test_lost_on_nodes.py",
    "bootstrap/training/test_words_on_nodes.py",
    "bootstrap/training/test_remote.py",
    "bootstrap/hosts/test_on_hosts.py",
    "bootstrap/hosts/test_on_bucket.py",
    "bootstrap/training/test_left_to_itself.py",
    "test_embeddings_life.py",
    "test_faults.py",
    "infra/test_guard.py",
    "bootstrap/nodes/test_scale_up.py",
    "bootstrap/cli/test_cli.py",
    "bootstrap/cli/deployments/test_destroy.py",
    "infra/test_cleanup.py",
    "benchmarks/test_gpu.py",
    "experiments/report/test_report.py",
    "bootstrap/cli/learning/test_embed.py",
    "trainer/distributed/test_exchange.py",
    "bootstrap/cli/learning/test_dataset.py",
    "bootstrap/removal/test_teardown.py",
    "bootstrap/removal/test_unverified.py",
    "bootstrap/preprocessing/test_cluster.py",
    "bootstrap/cli/deployments/test_embedded.py",
    "bootstrap/agent/test_attempts.py",
    "infra/test_app.py",
    "trainer/embeddings/test_training.py",
    "bootstrap/training/test_node_launch.py",
    "trainer/test_errors.py",
    "bootstrap/cli/test_output_streams.py",
    "trainer/test_training.py",
    "bootstrap/lifecycle/test_preflight.py",
    "bootstrap/removal/test_sweep.py",
    "embedded/nodes/test_boot.py",
    "bootstrap/lifecycle/test_plan.py",
    "bootstrap/cli/test_signals.py",
    "bootstrap/preprocessing/test_preprocess.py",
    "jobs/test_faults.py",
    "trainer/test_resume.py",
    "trainer/test_launch.py",
    "jobs/test_pipeline_work.py",
    "bootstrap/test_first_boot.py",
    "bootstrap/aws/test_ownership.py",
    "bootstrap/training/test_outage.py",
    "corpus/reading/test_ranges.py",
    "embedded/nodes/test_instances.py",
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

# Each session of boto3 would read the descriptions of the services anew, a megabyte for EC2 alone.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)

HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """A command that a test or a fixture runs in this process has handlers of its own, which are none of others."""
    _restore_handlers()
    yield
    _restore_handlers()


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    """An embedded AWS for the tests of one file; clients in this process, and commands that it starts, ask this one."""
    with asked_aws(tmp_path_factory.mktemp("aws")) as running:
        yield running


def _restore_handlers() -> None:
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; what is not listed stays in its order."""
    places = {TESTS / name: place for place, name in enumerate(LONGEST)}
    gone = [str(path) for path in places if not path.exists()]
    if gone:
        raise pytest.UsageError(f"tests/conftest.py lists files that are not there: {', '.join(gone)}")
    items.sort(key=lambda item: places.get(item.path, len(places)))
