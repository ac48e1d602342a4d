"""An emulated AWS account that replaces AWS for this process and the commands that it starts.

The account has the roles that `aws emr create-default-roles` creates, but here these roles have all permissions.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3

from shoal_local_aws.aws import EmbeddedAws

__all__ = ["local_aws", "raise_quotas"]

_ENOUGH = 1152.0
"""Value for which every quota suffices, in vCPUs or instances."""
_ROLES = {"EMR_DefaultRole": "elasticmapreduce", "EMR_EC2_DefaultRole": "ec2"}


@contextmanager
def local_aws(folder: Path | str) -> Iterator[EmbeddedAws]:
    """Emulate AWS until the end of a `with` block, for the AWS clients of this process and of its child processes.

    Args:
        folder: Folder for the log of the emulator and the files of emulated nodes.

    Yields:
        The running emulator. Its `environment` contains the environment variables for other processes.

    Raises:
        EmulatorError: The emulator does not start.
    """
    with EmbeddedAws(Path(folder)) as running, use_emulator(running):
        _make_roles()
        yield running


@contextmanager
def use_emulator(running: EmbeddedAws) -> Iterator[None]:
    """Direct the AWS clients of this process and of its child processes to the emulator `running`, until the end of a
    `with` block."""
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


def raise_quotas() -> None:
    """Raise all quotas of the emulated account in the region of this process's AWS clients.

    The account is new. Without higher quotas, it starts no instance with a GPU and no training job.

    Raises:
        botocore.exceptions.BotoCoreError: No emulator runs.
    """
    quotas = boto3.client("service-quotas")
    for service in ("ec2", "sagemaker"):
        for each in quotas.list_service_quotas(ServiceCode=service)["Quotas"]:
            if each["Value"] < _ENOUGH:
                quotas.request_service_quota_increase(
                    ServiceCode=service, QuotaCode=each["QuotaCode"], DesiredValue=_ENOUGH
                )


def _make_roles() -> None:
    iam = boto3.client("iam")
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    for name, service in _ROLES.items():
        trust = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=_document(trust))
        iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=_document(everything))
    iam.create_instance_profile(InstanceProfileName="EMR_EC2_DefaultRole")
    iam.add_role_to_instance_profile(InstanceProfileName="EMR_EC2_DefaultRole", RoleName="EMR_EC2_DefaultRole")


def _document(statement: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
