"""Errors of an emulator that does not run."""

import socket
from unittest.mock import Mock

import pytest
from botocore.exceptions import EndpointConnectionError, SSLError

from common.errors import ShoalError
from shoal.aws.loopback import is_unreachable, require_s3


@pytest.mark.parametrize(
    ("endpoint", "port"), [("http://127.0.0.1:4566", 4566), ("http://127.0.0.1", 80), ("https://127.0.0.1", 443)]
)
def test_s3_is_tried_at_the_port_of_its_address(endpoint, port, monkeypatch):
    tried = []
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    monkeypatch.setattr(socket, "create_connection", lambda address, **_: tried.append(address) or Mock())
    require_s3()
    assert tried == [("127.0.0.1", port)]


def test_an_emulator_that_does_not_run_is_reported(monkeypatch, messages):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:4566")
    monkeypatch.setattr(socket, "create_connection", Mock(side_effect=OSError("refused")))
    with messages.raises(ShoalError):
        require_s3()


@pytest.mark.parametrize(
    ("error", "unreachable"),
    [
        (EndpointConnectionError(endpoint_url="http://127.0.0.1:1"), True),
        (EndpointConnectionError(endpoint_url="https://s3.amazonaws.com"), False),
        (SSLError(endpoint_url="https://127.0.0.1:1", error="bad certificate"), False),
    ],
)
def test_only_an_emulator_that_does_not_answer_is_unreachable(error, unreachable):
    wrapped = ValueError()
    wrapped.__cause__ = error
    assert is_unreachable(wrapped) is unreachable
