"""What the preflight reports where AWS names no zone at all, which the embedded AWS never does."""

import boto3
import pytest

from bootstrap.aws.account import Account
from bootstrap.lifecycle.rules import PreflightContext
from bootstrap.lifecycle.rules.capacity import too_few_zones
from infra.topology import Topology


def test_a_region_without_any_zone_for_the_account_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Account, "items", lambda *_, **__: iter(()))
    training = [{"name": "fast", "instance_type": "g5.xlarge", "count": 2}]
    wanted = Topology.model_validate({"name": "mine", "description": "x", "training": training})
    account = Account(boto3.Session(region_name=wanted.region))
    asked = PreflightContext(topology=wanted, deployment="mine", owner="ada", account=account)
    (sentence,) = too_few_zones(asked)
    assert sentence == f"zone: {wanted.region} has no zone that your account may use; write another region."
