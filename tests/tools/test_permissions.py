"""IAM accepts the policies that users paste, and the reference shows each."""

import json

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws

from infra.policies import MOST_CHARACTERS, POLICIES, document
from tools.permissions import page, pasted


def test_the_page_shows_every_policy_as_json() -> None:
    assert [policy for policy in POLICIES if pasted(policy) not in page()] == []


@pytest.mark.parametrize("policy", POLICIES)
def test_iam_accepts_the_policy(policy: str, aws: EmbeddedAws) -> None:
    assert len(json.dumps(document(policy), separators=(",", ":"))) <= MOST_CHARACTERS
    sids = [statement["Sid"] for statement in document(policy)["Statement"]]
    assert len(sids) == len(set(sids))
    iam = boto3.client("iam")
    made = iam.create_policy(PolicyName=policy, PolicyDocument=json.dumps(document(policy)))["Policy"]
    assert made["IsAttachable"]
