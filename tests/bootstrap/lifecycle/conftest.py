"""What tests of the preflight ask: the embedded AWS, which has few machines running."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from bootstrap.lifecycle import preflight
from embedded.aws import REGION, EmbeddedAws


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as running:
        yield running


@pytest.fixture
def asking(aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> boto3.Session:
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)
    return preflight.session(REGION)


@pytest.fixture
def ec2(asking: boto3.Session) -> Any:
    return asking.client("ec2")
