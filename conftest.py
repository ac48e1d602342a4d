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
from shoal_local_aws.account import raise_quotas
from shoal_local_aws.aws import EmbeddedAws
from tests.local_aws.accounts import running_aws

from shoal.aws.cdk import WHEELS

pytest_plugins = ["tests.costs", "tests.messages"]

ROOT = Path(__file__).parent

# Processes that tests start find this checkout and the tests' helpers from any folder.
_PLACES = [ROOT, *(ROOT / "packages" / name for name in ("balance", "guard", "local-aws"))]
os.environ["PYTHONPATH"] = os.pathsep.join(map(str, _PLACES))

# A shell starts background jobs with SIGINT ignored, and children inherit that. Processes under test must be
# interruptible.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Processes of parallel tests have the first variable set, and commands under test would break their lines. The second
# has options of this run, which a pytest under test may not know.
for variable in ("COLUMNS", "PYTEST_ADDOPTS"):
    os.environ.pop(variable, None)

# Several tests run at once, so threads of torch that wait must not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

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
    """Start an embedded AWS for the tests of one file. Clients in this process and commands that it starts use it. Its
    quotas suffice for all topologies, unlike those of a new account."""
    with running_aws(tmp_path_factory.mktemp("aws"), WHEELS) as running:
        raise_quotas()
        yield running


def _restore_handlers() -> None:
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)
