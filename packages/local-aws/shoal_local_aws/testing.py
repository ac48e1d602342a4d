"""AWS on this machine, for the tests of other programs: their steps on EMR, and their CDK apps, really run.

A test that asks for the fixture `shoal_aws`, which is there wherever this package is installed beside pytest, gets a
session of an account of its own, in which nothing costs anything:

    def test_the_step_counts_words(shoal_aws):
        emr = shoal_aws.client("emr")

The account has the roles that `aws emr create-default-roles` makes, here with all permissions.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import boto3

    from shoal_local_aws.aws import EmbeddedAws

__all__ = ["local_aws", "shoal_aws"]

_ROLES = {"EMR_DefaultRole": "elasticmapreduce", "EMR_EC2_DefaultRole": "ec2"}


@contextmanager
def local_aws(folder: Path | str) -> Iterator["EmbeddedAws"]:
    """AWS on this machine until the end of the block: the AWS clients of this process, and of the commands that it
    starts, ask it and nobody else.

    Args:
        folder: Where its log and the files of its nodes are kept.

    Yields:
        What is running; its `environment` has the variables for other processes.

    Raises:
        EmulatorError: It does not start.
    """
    from shoal_local_aws.aws import EmbeddedAws  # pytest loads this module in whatever it tests

    with EmbeddedAws(Path(folder)) as running, asked(running):
        yield running


@contextmanager
def asked(running: "EmbeddedAws") -> Iterator[None]:
    """Until the end of the block, the AWS clients of this process and of its commands ask this AWS."""
    import boto3

    before = {name: os.environ.get(name) for name in running.environment}
    session, boto3.DEFAULT_SESSION = boto3.DEFAULT_SESSION, None
    os.environ.update(running.environment)
    try:
        yield
    finally:
        boto3.DEFAULT_SESSION = session
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@pytest.fixture(scope="module")
def shoal_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator["boto3.Session"]:
    """A session of AWS on this machine, for the tests of one file."""
    import boto3

    with local_aws(tmp_path_factory.mktemp("aws")):
        session = boto3.Session()
        _make_roles(session)
        yield session


def _make_roles(session: "boto3.Session") -> None:
    iam = session.client("iam")
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    for name, service in _ROLES.items():
        trust = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(trust))
        iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=_document(everything))
    iam.create_instance_profile(InstanceProfileName="EMR_EC2_DefaultRole")
    iam.add_role_to_instance_profile(InstanceProfileName="EMR_EC2_DefaultRole", RoleName="EMR_EC2_DefaultRole")


def _document(statement: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
