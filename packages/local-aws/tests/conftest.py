"""Fixtures: one emulator for each test module, with clients and stacks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from shoal_local_aws.account import raise_quotas
from shoal_local_aws.aws import REGION, EmbeddedAws
from tests.local_aws.accounts import keys_of, running_aws
from tests.local_aws.stacks import Client, Stacks


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    """Emulator for the tests of one file. The clients in this process and in its child processes use it."""
    with running_aws(tmp_path_factory.mktemp("aws")) as running:
        yield running


@pytest.fixture(scope="module")
def raised_quotas(aws: EmbeddedAws) -> None:
    """Quotas with which instances with GPUs and training jobs start, unlike those of a new account."""
    raise_quotas()


@pytest.fixture(scope="module")
def client(aws: EmbeddedAws) -> Client:
    session = boto3.Session(**keys_of(aws), region_name=REGION)
    return lambda service: session.client(service, endpoint_url=aws.endpoint)


@pytest.fixture(scope="module")
def stacks(client: Client) -> Stacks:
    return Stacks(client)


@pytest.fixture(scope="module")
def upload(client: Client) -> Callable[[str, str, bytes | str], str]:
    """Return a function that uploads an object and returns the object's address. It creates a missing bucket."""

    def put(bucket: str, key: str, body: bytes | str) -> str:
        s3 = client("s3")
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        return f"s3://{bucket}/{key}"

    return put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()
