"""Retries of calls, and the messages during them."""

import os
import re
import signal
import threading

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError

from shoal.aws.retry import Retrying


def refused(code, status):
    response = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "DescribeStep")


def failing(times, error):
    calls = iter(range(times + 1))

    def call():
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
def test_a_transient_error_is_retried_and_a_short_failure_is_not_reported(error):
    printed = []
    assert Retrying(pause=0, notice=60, say=printed.append)(failing(3, error)) == 3
    assert printed == []


@pytest.mark.parametrize("error", [NoCredentialsError(), refused("ExpiredToken", 403), refused("AccessDenied", 403)])
def test_a_permanent_error_is_raised_at_once(error):
    with pytest.raises(type(error)):
        Retrying(pause=0)(failing(1, error))


def test_attempts_end_after_the_given_time():
    error = EndpointConnectionError(endpoint_url="http://127.0.0.1")
    with pytest.raises(EndpointConnectionError):
        Retrying(seconds=0.01, pause=0)(failing(10**9, error))


@pytest.fixture
def released():
    """Event that releases calls that hang; set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def test_messages_state_the_start_and_end_of_retries_and_the_next_answer(released, messages):
    printed = []

    def say(text):
        printed.append(text)
        released.set()

    again = Retrying(notice=0.01, say=say)
    assert again(lambda: released.wait(60)) is True
    for text in printed:
        messages.check(re.sub(r"\d+:\d\d(:\d\d)?|\d+(?= s)", "TIME", text))
    assert not again.unanswered


def test_ctrl_c_arrives_while_a_call_hangs_and_aws_counts_as_unanswered(released):
    again = Retrying(notice=0.01, say=lambda _: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        again(lambda: released.wait(600))
    assert again.unanswered
    again.say = lambda _: None
    assert again(lambda: 1) == 1
    assert not again.unanswered


def test_attempts_end_even_if_a_call_hangs(released):
    with pytest.raises(ReadTimeoutError):
        Retrying(seconds=0.05, notice=0.01, say=lambda _: None)(lambda: released.wait(600))


def test_a_refusal_is_an_answer():
    again = Retrying(seconds=0, pause=0, notice=0, say=lambda _: None)
    with pytest.raises(EndpointConnectionError):
        again(failing(9, EndpointConnectionError(endpoint_url="http://127.0.0.1")))
    assert again.unanswered
    with pytest.raises(ClientError):
        again(failing(1, refused("AccessDenied", 403)))
    assert not again.unanswered
