"""An embedded AWS that clients in this process, and commands that it starts, ask."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from shoal_local_aws.account import asked
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.permissions.record import ALLOWED, read_checks


def keys_of(aws: EmbeddedAws) -> dict[str, str]:
    """The keys of the user of an embedded AWS, as boto3 takes them."""
    return {name.lower(): aws.environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}


def make_roles(iam: Any) -> None:
    """Make what clusters and nodes that a test starts by itself have: the roles `service` and `other` of EMR and
    `execution` of CloudFormation, and the instance profile `nodes`. All may do everything."""
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
    """Who was refused which action, and why: without permission, as the root, or because IAM has no such action."""
    checks = read_checks(aws.folder)
    return {(check.who, check.action, check.decision) for check in checks if check.decision != ALLOWED}


def session_with(document: dict[str, Any]) -> boto3.Session:
    """A session of a new user of the account, who has this policy and nothing else."""
    iam, name = boto3.client("iam"), f"person-{uuid4().hex[:8]}"
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="only", PolicyDocument=json.dumps(document))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return boto3.Session(
        aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"], region_name="us-east-1"
    )


@contextmanager
def asked_aws(folder: Path, wheels: Path | None = None) -> Iterator[EmbeddedAws]:
    """An embedded AWS until the end of the block, to which alone this process and its commands then talk."""
    with EmbeddedAws(folder, wheels=wheels) as running, asked(running):
        make_roles(boto3.client("iam"))
        yield running
