"""Tests of the preflight rule on the key that encrypts volumes."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import Denied, VolumeKey

from tests.bootstrap.lifecycle.preflight import GPU, findings, of, rules

SCALING = "arn:aws:iam::000000000000:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
TRAINING = {"training": [GPU], "share": "efs"}
RESET = "change the default to AWS's own key: aws ec2 reset-ebs-default-kms-key-id --region us-east-1"


@pytest.fixture
def key(asking: boto3.Session) -> Iterator[str]:
    kms = asking.client("kms")
    arn = kms.create_key()["KeyMetadata"]["Arn"]
    yield arn
    kms.schedule_key_deletion(KeyId=arn, PendingWindowInDays=7)


def allow(asking: boto3.Session, key: str, principal: Any, actions: Any) -> None:
    """Allow the principal to use the key, in addition to the account's principals."""
    own = {"AWS": "arn:aws:iam::000000000000:root"}
    statements = [
        {"Effect": "Allow", "Principal": each, "Action": allowed, "Resource": "*"}
        for each, allowed in ((own, "kms:*"), (principal, actions))
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    asking.client("kms").put_key_policy(KeyId=key, Policy=document)


def test_a_key_of_the_account_that_auto_scaling_may_not_use_is_refused(
    aws: EmbeddedAws, asking: boto3.Session, key: str
) -> None:
    with aws.faults.during(VolumeKey(key=key)):
        found = findings(asking, of(**TRAINING))
    assert rules(found) == [("error", "key_unusable")]
    assert f"in the key's policy allow {SCALING} kms:CreateGrant" in found[0][2]
    assert found[0][2].endswith(RESET)


@pytest.mark.parametrize(
    ("principal", "actions"),
    [({"AWS": [SCALING]}, ["kms:Decrypt", "kms:CreateGrant"]), ({"AWS": "*"}, "kms:*"), ("*", "kms:createGrant")],
)
def test_a_key_with_a_policy_for_auto_scaling_is_accepted(
    principal: Any, actions: Any, aws: EmbeddedAws, asking: boto3.Session, key: str
) -> None:
    allow(asking, key, principal, actions)
    with aws.faults.during(VolumeKey(key=key)):
        assert findings(asking, of(**TRAINING)) == []


def test_a_key_with_a_grant_for_auto_scaling_is_accepted(aws: EmbeddedAws, asking: boto3.Session, key: str) -> None:
    asking.client("kms").create_grant(KeyId=key, GranteePrincipal=SCALING, Operations=["CreateGrant"])
    with aws.faults.during(VolumeKey(key=key)):
        assert findings(asking, of(**TRAINING)) == []


def test_a_disabled_key_is_refused(aws: EmbeddedAws, asking: boto3.Session, key: str) -> None:
    asking.client("kms").disable_key(KeyId=key)
    with aws.faults.during(VolumeKey(key=key)):
        found = findings(asking, of(**TRAINING))
    assert found == [
        (
            "error",
            "key_unusable",
            f"the KMS key {key}, the account's default for volumes, is Disabled and "
            f"SYMMETRIC_DEFAULT, so no node would start; enable it, or {RESET}",
        )
    ]


def test_an_unreadable_key_is_a_warning_with_the_required_permissions(
    aws: EmbeddedAws, asking: boto3.Session, key: str
) -> None:
    with aws.faults.during(VolumeKey(key=key), Denied(service="kms")):
        ((level, rule, sentence),) = findings(asking, of(**TRAINING))
    assert (level, rule) == ("warning", "key_unusable")
    assert "must allow the role AWSServiceRoleForAutoScaling kms:CreateGrant" in sentence
    assert ") could not be checked: An error occurred (AccessDeniedException)" in sentence


def test_the_key_of_a_topology_must_exist_encrypt_and_allow_auto_scaling(asking: boto3.Session, key: str) -> None:
    def said(name: str) -> list[str]:
        found = findings(asking, of(kms_key=name, **TRAINING))
        assert rules(found) == [("error", "key_unusable")] * len(found)
        return [sentence for *_, sentence in found]

    (sentence,) = said(key.rpartition("/")[0] + "/00000000-0000-0000-0000-000000000000")
    assert "does not exist for your credentials; write a different key" in sentence
    (sentence,) = said(key)
    assert sentence.startswith(f"kms_key: {key} does not allow Auto Scaling to use it")
    allow(asking, key, {"AWS": [SCALING]}, "kms:*")
    assert said(key) == []
    signing = asking.client("kms").create_key(KeyUsage="SIGN_VERIFY", KeySpec="RSA_2048")["KeyMetadata"]["Arn"]
    (sentence,) = said(signing)
    assert "is Enabled and RSA_2048, so no node would start" in sentence
