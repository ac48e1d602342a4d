"""Credentials of an account that have expired."""

import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.faults.kinds import ExpiredCredentials

from corpus.reading import s3
from shoal.aws.account import connect
from shoal.cli.aws_errors import sentence


def test_expired_credentials_are_refused_by_aws(aws, monkeypatch):
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", "2026-01-01T00:00:00Z")
    s3._clients.clear()  # other tests cached a client with credentials that do not expire
    with aws.faults.during(ExpiredCredentials()):
        with pytest.raises(ClientError) as refused:
            connect("us-east-1").client("ec2").describe_vpcs()
        with pytest.raises(ClientError, match="ExpiredToken"):
            s3.client().list_buckets()
    assert sentence(refused.value).startswith("AWS rejected your credentials (")
