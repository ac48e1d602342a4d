"""An emulator for the clients in this process and in its child processes, with users and roles."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from shoal_local_aws.account import use_emulator
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.permissions.record import ALLOWED, read_checks
from tests.local_aws.forked_aws import ForkedAws


def keys_of(aws: EmbeddedAws) -> dict[str, str]:
    """Return the keys of an emulator's user, as arguments for boto3."""
    return {name.lower(): aws.environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}


def make_roles(iam: Any) -> None:
    """Create EMR's roles `service` and `other`, CloudFormation's role `execution`, and the instance profile `nodes`.

    All these roles have all permissions.
    """
    everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    services = {
        "service": "elasticmapreduce",
        "other": "elasticmapreduce",
        "nodes": "ec2",
        "execution": "cloudformation",
    }
    for name, service in services.items():
        trust = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)
        iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=json.dumps(everything))
    iam.create_instance_profile(InstanceProfileName="nodes")
    iam.add_role_to_instance_profile(InstanceProfileName="nodes", RoleName="nodes")


def refused(aws: EmbeddedAws) -> set[tuple[str, str, str]]:
    """Return principal, action and decision of all requests that were refused for any reason."""
    checks = read_checks(aws.folder)
    return {(check.who, check.action, check.decision) for check in checks if check.decision != ALLOWED}


def session_with(document: dict[str, Any]) -> boto3.Session:
    """Return a boto3 session of a new user that has only this policy."""
    iam, name = boto3.client("iam"), f"person-{uuid4().hex[:8]}"
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="only", PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return boto3.Session(
        aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"], region_name="us-east-1"
    )


@contextmanager
def running_aws(folder: Path, wheels: Path | None = None) -> Iterator[EmbeddedAws]:
    """Run an emulator until the end of a `with` block. This process and its child processes use only this emulator."""
    with ForkedAws(folder, wheels=wheels) as running, use_emulator(running):
        make_roles(boto3.client("iam"))
        yield running
