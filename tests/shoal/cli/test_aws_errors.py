"""AWS errors are explained to the user with advice."""

import pytest
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError

from shoal.cli.aws_errors import sentence
from shoal.cli.target import connect_account

ERRORS: dict[str, BotoCoreError | ClientError] = {
    "no credentials": exceptions.NoCredentialsError(),
    "no profile": exceptions.ProfileNotFound(profile="ours"),
    "no process": exceptions.CredentialRetrievalError(provider="custom-process", error_msg="over.\n"),
    "no certificate": exceptions.SSLError(endpoint_url="https://127.0.0.1:4566/", error="no file"),
    "no login": exceptions.UnauthorizedSSOTokenError(),
    "no network": exceptions.ConnectTimeoutError(endpoint_url="https://x"),
    "no header": exceptions.HTTPClientError(error="Invalid header value b'secret\\n'"),
    "no emulator": exceptions.EndpointConnectionError(endpoint_url="http://127.0.0.1:4566/"),
    "ended emulator": exceptions.ConnectionClosedError(endpoint_url="http://localhost:4566/"),
    **{
        code: ClientError({"Error": {"Code": code, "Message": "No."}}, "DescribeStacks")
        for code in ("ExpiredToken", "400", "AccessDenied", "ValidationError")  # 400 answers a HEAD
    },
}


@pytest.mark.parametrize("name", ERRORS)
def test_each_aws_error_is_explained_with_advice(name, messages) -> None:
    messages.check(sentence(ERRORS[name]))


@pytest.mark.parametrize(
    ("option", "environment", "region"),
    [
        ("eu-west-1", {"AWS_REGION": "eu-west-2"}, "eu-west-1"),
        (None, {"AWS_REGION": "eu-west-2", "AWS_DEFAULT_REGION": "eu-west-3"}, "eu-west-2"),
        (None, {"AWS_DEFAULT_REGION": "eu-west-3"}, "eu-west-3"),
        (None, {}, "us-east-1"),
    ],
)
def test_the_region_comes_from_option_environment_or_default(option, environment, region, monkeypatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert connect_account(option).region == region
