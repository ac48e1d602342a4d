"""Expiry of an account's credentials, and the warning if they expire too early."""

import re
from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import ExpiredCredentials

from bootstrap.aws.account import connect, credentials_end, credentials_warning
from bootstrap.cli.aws_errors import sentence
from corpus.reading import s3

END = "AWS_CREDENTIAL_EXPIRATION"


@pytest.mark.parametrize(
    ("written", "end"),
    [
        (None, None),
        ("tomorrow", None),
        ("2026-11-26T10:05:00Z", datetime(2026, 11, 26, 10, 5, tzinfo=UTC)),
        ("2026-11-26T10:05:00+02:00", datetime(2026, 11, 26, 8, 5, tzinfo=UTC)),
        ("2026-11-26T10:05:00", datetime(2026, 11, 26, 10, 5, tzinfo=UTC)),
    ],
)
def test_the_expiry_of_the_environments_credentials_is_read(written, end, aws, monkeypatch):
    if written:
        monkeypatch.setenv(END, written)
    assert credentials_end(connect("us-east-1")) == end


@pytest.mark.parametrize("method", ["iam-role", "assume-role", "sso", "shared-credentials-file"])
def test_credentials_that_are_renewed_or_never_expire_have_no_expiry(method, monkeypatch):
    monkeypatch.setenv(END, "2026-11-26T10:05:00Z")
    session = boto3.Session(region_name="us-east-1")
    monkeypatch.setattr(session, "get_credentials", lambda: Credentials("a", "b", method=method))
    assert credentials_end(session) is None
    assert credentials_warning(session, 60, "it", "x") is None


def test_a_warning_names_both_times_and_what_to_do(aws, monkeypatch, messages):
    end = datetime.now(UTC) + timedelta(minutes=30)
    monkeypatch.setenv(END, end.isoformat())
    session = connect("us-east-1")
    assert credentials_warning(session, 1_700, "the training", "renew them") is None
    printed = credentials_warning(session, 3_600, "the training", "renew them")
    messages.hide(f"{end:%Y-%m-%d %H:%M}", "EXPIRY")
    messages.check(re.sub(r"about \d{4}-\d\d-\d\d \d\d:\d\d", "about END", printed))


def test_expired_credentials_are_refused_by_aws(aws, monkeypatch):
    monkeypatch.setenv(END, "2026-01-01T00:00:00Z")
    s3._client.cache_clear()  # other tests cached a client with credentials that do not expire
    with aws.faults.during(ExpiredCredentials()):
        with pytest.raises(ClientError) as refused:
            connect("us-east-1").client("ec2").describe_vpcs()
        with pytest.raises(ClientError, match="ExpiredToken"):
            s3.client().list_buckets()
    assert sentence(refused.value).startswith("AWS rejected your credentials (")
