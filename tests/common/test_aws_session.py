"""botocore's `credential_process` runs a program that prints credentials. Its failures become clear errors."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import CredentialRetrievalError, InvalidConfigError

from common.aws_session import core_session

VALID = {"Version": 1, "AccessKeyId": "AKIA", "SecretAccessKey": "secret", "SessionToken": "token"}
CONFIG = """\
[default]
credential_process = {process}
[profile role]
role_arn = arn:aws:iam::123456789012:role/any
source_profile = default
"""


@pytest.fixture
def uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that configures a profile with a `credential_process`."""

    def use(process: str, profile: str = "default") -> None:
        (tmp_path / "config").write_text(CONFIG.format(process=process))
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        monkeypatch.setenv("AWS_PROFILE", profile)

    return use


def frozen() -> Any:
    return core_session().get_credentials().get_frozen_credentials()


def printing(folder: Path, text: str) -> str:
    (folder / "text").write_text(text)
    program = folder / "login"
    program.write_text(f"#!/bin/sh\ncat {folder / 'text'}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.mark.parametrize("profile", ["default", "role"])
@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("not JSON", "Expecting value"),
        ("[1]", "no attribute"),
        ("{}", "Unsupported version"),
        (json.dumps({**VALID, "Expiration": "2020-01-01T00:00:00Z"}), "expired at 2020-01-01T00:00:00Z"),
        (json.dumps({**VALID, "Expiration": "soon"}), 'Invalid timestamp "soon"'),
    ],
)
def test_a_failing_credential_process_raises_a_botocore_error(uses, tmp_path, printed, why, profile) -> None:
    uses(printing(tmp_path, printed), profile)
    with pytest.raises(CredentialRetrievalError, match=why):
        frozen()


@pytest.mark.parametrize("profile", ["default", "role"])
@pytest.mark.parametrize("process", ["/no/such/program --now", "'unbalanced", ""])
def test_an_invalid_credential_process_raises_a_botocore_error(uses, process, profile) -> None:
    uses(process, profile)
    with pytest.raises(CredentialRetrievalError, match=r"credential_process.*(No such file|No closing|out of range)"):
        frozen()


def test_valid_credentials_of_a_process_are_used(uses: Any, tmp_path: Path) -> None:
    for more in ({}, {"Expiration": "2100-01-01T00:00:00+00:00"}):
        uses(printing(tmp_path, json.dumps({**VALID, **more})))
        assert frozen().secret_key == "secret"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("AWS_ENDPOINT_URL", url)
            for url in ("file:///x", "x", "http://[::1", "http://h:99999", "ftp://h", "http://h h")
        ),
        ("AWS_ENDPOINT_URL_S3", "s3.local"),
        ("AWS_MAX_ATTEMPTS", "x"),
        ("AWS_METADATA_SERVICE_TIMEOUT", "x"),
        ("endpoint_url", "file:///x"),
        ("max_attempts", "x"),
    ],
)
def test_a_setting_that_botocore_cannot_read_is_named(name, value, tmp_path, monkeypatch, messages) -> None:
    (tmp_path / "config").write_text("[default]\n" + (f"{name} = {value}\n" if name.islower() else ""))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    if name.isupper():
        monkeypatch.setenv(name, value)
    with messages.raises(InvalidConfigError) as error:
        core_session()
    assert name in str(error.value)
