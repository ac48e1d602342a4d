"""What the tests of the embedded AWS share: one emulator a module, clients of it, and waiting for what comes."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from embedded.aws import REGION, EmbeddedAws

Client = Callable[[str], Any]
Eventually = Callable[[Callable[[], Any]], Any]


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedAws]:
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as running:
        yield running


@pytest.fixture(scope="module")
def client(aws: EmbeddedAws) -> Client:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION)
    return lambda service: session.client(service, endpoint_url=aws.endpoint)


@pytest.fixture(scope="session")
def eventually() -> Eventually:
    """Waits until a probe gives something true, and returns that."""

    def wait(probe: Callable[[], Any]) -> Any:
        until = time.monotonic() + 60
        while not (found := probe()):
            assert time.monotonic() < until, "this never became true"
            time.sleep(0.02)
        return found

    return wait


@pytest.fixture(scope="module")
def upload(client: Client) -> Callable[[str, str, bytes | str], str]:
    """Puts an object and returns its address; makes the bucket when there is none."""

    def put(bucket: str, key: str, body: bytes | str) -> str:
        s3 = client("s3")
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key=key, Body=body)
        return f"s3://{bucket}/{key}"

    return put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()
