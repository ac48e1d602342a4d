"""Fixtures of the tests of the embedded AWS: one emulator per module, its clients, and stacks."""

from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from shoal_local_aws.aws import REGION, EmbeddedAws
from tests.local_aws.accounts import asked_aws, keys_of
from tests.local_aws.stacks import Client, Stacks


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    """An embedded AWS for the tests of one file; clients in this process, and commands that it starts, ask this one."""
    with asked_aws(tmp_path_factory.mktemp("aws")) as running:
        yield running


@pytest.fixture(scope="module")
def client(aws: EmbeddedAws) -> Client:
    session = boto3.Session(**keys_of(aws), region_name=REGION)
    return lambda service: session.client(service, endpoint_url=aws.endpoint)


@pytest.fixture(scope="module")
def stacks(client: Client) -> Stacks:
    return Stacks(client)


@pytest.fixture(scope="module")
def upload(client: Client) -> Callable[[str, str, bytes | str], str]:
    """Puts an object and returns its address; creates the bucket when there is none."""

    def put(bucket: str, key: str, body: bytes | str) -> str:
        s3 = client("s3")
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        return f"s3://{bucket}/{key}"

    return put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()
