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
from tests.local_aws.accounts import asked_aws

from bootstrap.aws.cdk import WHEELS

ROOT = Path(__file__).parent

LONGEST = (
    "tests/test_demo.py",
    "tests/test_pages.py",
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
"""The files that take longest, the longest first (`--durations=50`): begun last, one of them keeps all from the end."""

# What tests start finds this checkout and the helpers of tests, wherever it is started.
_PLACES = [ROOT, *(ROOT / "packages" / name for name in ("balance", "guard", "local-aws"))]
os.environ["PYTHONPATH"] = os.pathsep.join(map(str, _PLACES))

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
    with asked_aws(tmp_path_factory.mktemp("aws"), WHEELS) as running:
        yield running


def _restore_handlers() -> None:
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; what is not listed stays in its order."""
    places = {ROOT / name: place for place, name in enumerate(LONGEST)}
    gone = [str(path) for path in places if not path.exists()]
    if gone:
        raise pytest.UsageError(f"conftest.py lists files that are not there: {', '.join(gone)}")
    items.sort(key=lambda item: places.get(item.path, len(places)))
