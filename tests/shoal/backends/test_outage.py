"""Ctrl-C while AWS does not answer the calls that stop the nodes of a training run."""

import os
import signal

import boto3
import psutil
import pytest
from shoal_local_aws.account import raise_quotas, use_emulator
from shoal_local_aws.aws import EmbeddedAws
from tests.local_aws.accounts import make_roles

from common.progress import ProgressReporter
from shoal.aws import fleet
from shoal.aws.cdk import WHEELS
from shoal.aws.retry import Abandoned, retrying
from tests.fleet import BUCKET, Fleet


@pytest.fixture
def aws(tmp_path):
    """Start a separate embedded AWS, because the test stops it."""
    with EmbeddedAws(tmp_path / "aws", wheels=WHEELS) as running, use_emulator(running):
        make_roles(boto3.client("iam"))
        raise_quotas()
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield running


def test_ctrl_c_during_an_outage_prints_the_command_that_stops_the_nodes(aws, monkeypatch, messages):
    one = Fleet().add("one", "g5.xlarge", 1)
    groups = fleet.groups(one.deployment)
    (server,) = psutil.Process(aws._watchdog.pid).children()
    said = []

    def press(text):
        said.append(text)
        if len(said) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(retrying, "notice", 0.2)
    monkeypatch.setattr(retrying, "say", press)
    monkeypatch.setattr(ProgressReporter, "note", lambda _, text: said.append(text))
    server.suspend()
    try:
        with pytest.raises(Abandoned):
            fleet.scale_to_zero(one.deployment, groups)
        warning = "\n".join(said[-2:])
    finally:
        server.resume()
        retrying._record_answer()
    messages.hide(one.name, "FLEET")
    messages.check(warning)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
