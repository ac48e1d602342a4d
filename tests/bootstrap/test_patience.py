from collections.abc import Callable

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from bootstrap.patience import patiently


def refused(code: str, status: int) -> ClientError:
    response = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "DescribeStep")


def failing(times: int, error: BotoCoreError | ClientError) -> Callable[[], int]:
    calls = iter(range(times + 1))

    def call() -> int:
        if (count := next(calls)) < times:
            raise error
        return count

    return call


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="http://127.0.0.1"),
        ReadTimeoutError(endpoint_url="http://127.0.0.1"),
        refused("ThrottlingException", 400),
        refused("InternalFailure", 500),
    ],
)
def test_what_may_pass_is_waited_for(error: BotoCoreError | ClientError) -> None:
    assert patiently(failing(3, error), pause=0) == 3


@pytest.mark.parametrize("error", [NoCredentialsError(), refused("ExpiredToken", 403), refused("AccessDenied", 403)])
def test_what_will_not_pass_is_said_at_once(error: BotoCoreError | ClientError) -> None:
    with pytest.raises(type(error)):
        patiently(failing(1, error), pause=0)


def test_patience_ends() -> None:
    error = EndpointConnectionError(endpoint_url="http://127.0.0.1")
    with pytest.raises(EndpointConnectionError):
        patiently(failing(10**9, error), seconds=0.01, pause=0)
