"""Tests of the preflight rule on the account's plan."""

import boto3
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import Denied, FreePlan

from tests.bootstrap.lifecycle.preflight import GPU, PRIMARY, findings, of, rules

TRAINING = {"training": [GPU], "share": "efs"}


def test_the_free_plan_is_refused_with_the_command_that_changes_it(aws: EmbeddedAws, asking: boto3.Session) -> None:
    with aws.faults.during(FreePlan()):
        found = findings(asking, of(preprocessing={"primary": PRIMARY}, **TRAINING))
    assert rules(found) == [("error", "free_plan")]
    assert "no m5.xlarge and no g5.xlarge" in found[0][2]


def test_an_unknown_plan_does_not_count_as_the_paid_plan(aws: EmbeddedAws, asking: boto3.Session) -> None:
    with aws.faults.during(Denied(service="freetier")):
        assert rules(findings(asking, of(**TRAINING))) == [("warning", "free_plan")]
