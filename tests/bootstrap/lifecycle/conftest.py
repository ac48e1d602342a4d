"""Fixtures for tests of the preflight: a session and an EC2 client of the embedded AWS."""

from typing import Any

import boto3
import pytest
from shoal_local_aws.aws import REGION, EmbeddedAws

from bootstrap.lifecycle import preflight


@pytest.fixture
def asking(aws: EmbeddedAws) -> boto3.Session:
    return preflight.session(REGION)


@pytest.fixture
def ec2(asking: boto3.Session) -> Any:
    return asking.client("ec2")
