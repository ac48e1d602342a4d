"""Rules on what the account itself has chosen: its plan, and the key by which it encrypts volumes.

The volumes of GPU nodes are always encrypted, those of EMR only where the account encrypts every new volume. Neither
Auto Scaling nor EMR may use a key of the account's own unless that key's policy says so, and EC2's dry run does not
find that.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bootstrap.aws.account import credentials_warning
from bootstrap.lifecycle.rules import PreflightContext
from infra.topology import instance_types

_PLANS_REGION = "us-east-1"
"""The only region that tells of plans."""
_DEPLOYMENT_SECONDS = 20 * 60
"""A cluster takes up to twelve minutes of it."""
_AWS_KEY = "alias/aws/ebs"
USES = "kms:CreateGrant, kms:Decrypt, kms:DescribeKey, kms:Encrypt, kms:GenerateDataKey* and kms:ReEncrypt*"
"""What a key's policy must allow those who start instances."""
_GRANTING = ("kms:creategrant", "kms:create*", "kms:*", "*")


def free_plan(context: PreflightContext) -> Iterator[str]:
    """The account has AWS's Free plan, with which none of the catalogue's types starts."""
    state = context.account.client("freetier", _PLANS_REGION).get_account_plan_state()
    if state["accountPlanType"] == "FREE":
        yield (
            "the account has AWS's Free plan, with which EC2 starts no "
            f"{' and no '.join(instance_types(context.topology))}; change to the Paid plan first: aws freetier "
            f"upgrade-account-plan --account-plan-type PAID --region {_PLANS_REGION}"
        )


def credentials_end_early(context: PreflightContext) -> Iterator[str]:
    """The credentials end while the deployment would still be created."""
    sentence = credentials_warning(
        context.account.session,
        _DEPLOYMENT_SECONDS,
        "a deployment",
        "CloudFormation goes on without them, and the command does not; renew them before, or type it again afterwards",
    )
    if sentence:
        yield sentence


def key_unusable(context: PreflightContext) -> Iterator[str]:
    """The account's own key for volumes is not enabled, or does not let Auto Scaling use it."""
    if context.topology.kms_key or not (context.topology.training or _always_encrypts(context)):
        return
    if (key := _own_key(context)) is None:
        return
    if key["KeyState"] != "Enabled":
        yield f"{_named(key)} is {key['KeyState']}, so no node would start; enable it, or {_reset(context)}"
    elif context.topology.training and not lets_in(context, key["Arn"], role := scaling_role(context)):
        yield (
            f"{_named(key)} does not let Auto Scaling use it, so no GPU node would start; allow {role} in the key's "
            f"policy {USES}, or {_reset(context)}"
        )


def key_keeps_from_emr(context: PreflightContext) -> Iterator[str]:
    """The account's own key encrypts every new volume, and may not be for EMR, whose role does not exist yet."""
    if context.topology.kms_key or not (context.topology.preprocessing and _always_encrypts(context)):
        return
    if (key := _own_key(context)) is None:
        return
    if key["KeyState"] == "Enabled" and not any(_allows(each, "*") for each in _policy(context, key["Arn"])):
        yield (
            f"{_named(key)} has a policy that names who may use it, and the role that the deployment creates for EMR "
            f"is not among them; allow all principals of the account {USES} through EC2 (conditions "
            f"kms:CallerAccount and kms:ViaService), or {_reset(context)}"
        )


def _always_encrypts(context: PreflightContext) -> bool:
    """Whether the account encrypts also volumes for which nobody asks for it."""
    return bool(context.account.client("ec2").get_ebs_encryption_by_default()["EbsEncryptionByDefault"])


def _own_key(context: PreflightContext) -> Mapping[str, Any] | None:
    """What KMS tells of the key that encrypts volumes where nobody names one; None for AWS's own key."""
    name = context.account.client("ec2").get_ebs_default_kms_key_id()["KmsKeyId"]
    if name == _AWS_KEY:
        return None
    key: Mapping[str, Any] = context.account.client("kms").describe_key(KeyId=name)["KeyMetadata"]
    return None if key["KeyManager"] == "AWS" else key


def scaling_role(context: PreflightContext) -> str:
    """The role by which Auto Scaling starts instances."""
    name = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
    return f"arn:aws:iam::{context.account.number()}:{name}"


def lets_in(context: PreflightContext, key: str, role: str) -> bool:
    """Whether a key's policy or a grant lets a role use it, by the key's id or ARN; conditions are not read."""
    if any(_allows(statement, role) for statement in _policy(context, key)):
        return True
    grants = context.account.items("kms", "list_grants", "Grants", KeyId=key)
    return any(grant.get("GranteePrincipal") == role for grant in grants)


def _policy(context: PreflightContext, key: str) -> list[Mapping[str, Any]]:
    text = context.account.client("kms").get_key_policy(KeyId=key, PolicyName="default")["Policy"]
    return _listed(json.loads(text)["Statement"])


def _allows(statement: Mapping[str, Any], principal: str) -> bool:
    """Whether a statement allows a principal, or everybody, to grant the key's use to a volume."""
    named = statement.get("Principal", ())
    principals = _listed(named.get("AWS", ()) if isinstance(named, Mapping) else named)
    actions = [action.lower() for action in _listed(statement.get("Action", ()))]
    return (
        statement["Effect"] == "Allow"
        and not {principal, "*"}.isdisjoint(principals)
        and not set(_GRANTING).isdisjoint(actions)
    )


def _listed(value: Any) -> list[Any]:
    """A policy may leave out the brackets of a list with one element."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _named(key: Mapping[str, Any]) -> str:
    return f"the KMS key {key['Arn']}, by which the account encrypts volumes,"


def _reset(context: PreflightContext) -> str:
    region = context.topology.region
    return f"have AWS's own key encrypt them: aws ec2 reset-ebs-default-kms-key-id --region {region}"
