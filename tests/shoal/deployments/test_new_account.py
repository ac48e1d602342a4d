"""The preflight of a new account: it prints the commands that request quotas, and passes after these commands."""

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local_aws.accounts import running_aws

from infra import topology
from shoal.aws.cdk import TOPOLOGIES
from shoal.deployments import preflight


@pytest.fixture(autouse=True)
def new_account(tmp_path: Path) -> Iterator[None]:
    """Emulator of an account with AWS's default quotas, which the clients in this process use."""
    with running_aws(tmp_path):
        yield


def commands(name: str) -> list[str]:
    """Return the commands that the preflight of a shipped topology prints for quotas."""
    wanted = topology.load(name, TOPOLOGIES)
    _, findings = preflight.online(wanted, preflight.session(wanted.region), deployment=name)
    assert {each.rule for each in findings if each.level == "error"} <= {"quota_too_low", "job_quota_too_low"}
    return [each.sentence.rpartition("request more: ")[2] for each in findings if each.level == "error"]


@pytest.mark.parametrize(
    ("name", "services"),
    [("starter", "ec2"), ("mixed-spot", "ec2 ec2"), ("managed", "sagemaker"), ("h100-8", "ec2 ec2")],
)
def test_the_printed_commands_prepare_a_new_account(name: str, services: str) -> None:
    requests = [shlex.split(each) for each in commands(name)]
    assert [words[words.index("--service-code") + 1] for words in requests] == services.split()
    for words in requests:
        subprocess.run(words, check=True, capture_output=True)
    assert commands(name) == []
