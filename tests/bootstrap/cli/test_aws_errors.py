"""AWS errors are explained to the user with advice."""

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ProfileNotFound,
    SSLError,
    UnauthorizedSSOTokenError,
)

from bootstrap.cli.aws_errors import sentence
from bootstrap.cli.target import connect_account


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "No."}}, "DescribeStacks")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (NoCredentialsError(), "run `aws configure` or set AWS_PROFILE"),
        (ProfileNotFound(profile="ours"), "run `aws configure` or set AWS_PROFILE"),
        (CredentialRetrievalError(provider="custom-process", error_msg="over.\n"), "run `aws configure`"),
        (SSLError(endpoint_url="https://127.0.0.1:4566/", error="no file"), "check that AWS_CA_BUNDLE"),
        (UnauthorizedSSOTokenError(), "run: aws sso login"),
        (ConnectTimeoutError(endpoint_url="https://x"), "check the network"),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1:4566/"), "start `shoal embedded`"),
        (ConnectionClosedError(endpoint_url="http://localhost:4566/"), "start `shoal embedded`"),
        (refused("ExpiredToken"), "renew them"),
        (refused("400"), "renew them"),  # answer to a HEAD request
        (refused("AccessDenied"), "ask your administrator"),
        (refused("Throttling"), "run the command again in a minute"),
        (refused("ValidationError"), "AWS failed: An error occurred (ValidationError)"),
    ],
)
def test_each_aws_error_is_explained_with_advice(error: BotoCoreError | ClientError, advice: str) -> None:
    explained = sentence(error)
    assert advice in explained
    assert ".;" not in explained
    assert "\n" not in explained


@pytest.mark.parametrize(
    ("option", "environment", "region"),
    [
        ("eu-west-1", {"AWS_REGION": "eu-west-2"}, "eu-west-1"),
        (None, {"AWS_REGION": "eu-west-2", "AWS_DEFAULT_REGION": "eu-west-3"}, "eu-west-2"),
        (None, {"AWS_DEFAULT_REGION": "eu-west-3"}, "eu-west-3"),
        (None, {}, "us-east-1"),
    ],
)
def test_the_region_comes_from_option_environment_or_default(
    option: str | None, environment: dict[str, str], region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert connect_account(option).region == region
