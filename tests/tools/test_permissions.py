"""The policies that people paste are those of the document, and IAM takes them."""

import json

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws

from infra.policies import MOST_CHARACTERS, POLICIES, document
from tools.permissions import DOCUMENT, made


def test_the_document_has_the_policies_as_they_are() -> None:
    assert DOCUMENT.read_text() == made(), "write it again by: python -m tools.permissions"


@pytest.mark.parametrize("policy", POLICIES)
def test_iam_takes_the_policy(policy: str, aws: EmbeddedAws) -> None:
    assert len(json.dumps(document(policy), separators=(",", ":"))) <= MOST_CHARACTERS
    sids = [statement["Sid"] for statement in document(policy)["Statement"]]
    assert len(sids) == len(set(sids))
    iam = boto3.client("iam")
    made = iam.create_policy(PolicyName=policy, PolicyDocument=json.dumps(document(policy)))["Policy"]
    assert made["IsAttachable"]
