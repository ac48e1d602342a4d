"""Notices of AWS about the end of a node, from the emulator's metadata service."""

import os

import boto3
import pytest
from shoal_local_aws.faults.kinds import SpotInterruption

from bootstrap.node.machine import spot_notice

ONE, OTHER = "i-0a1b2c3d", "i-0a1b2c3e"


def at(instance, patch):
    patch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"{os.environ['AWS_ENDPOINT_URL']}/_metadata/{instance}")
    return spot_notice()


def test_a_node_reads_only_the_notice_of_its_own_end(aws, monkeypatch):
    assert at(ONE, monkeypatch) == ""
    with aws.faults.during(SpotInterruption(instance=ONE)):
        assert (at(ONE, monkeypatch), at(OTHER, monkeypatch)) == ("now", "")
    assert at(ONE, monkeypatch) == ""
    assert boto3.client("sts").get_caller_identity()["Account"]  # all other requests work as before


@pytest.mark.parametrize(("endpoint", "why"), [("http://127.0.0.1:1", None), ("{aws}/elsewhere", "without a token")])
def test_a_metadata_service_without_an_answer_or_a_token_is_an_error(endpoint, why, aws, monkeypatch):
    there = endpoint.format(aws=os.environ["AWS_ENDPOINT_URL"])
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", there)
    with pytest.raises(OSError, match=why):
        spot_notice()
