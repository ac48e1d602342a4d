"""The rule on the KMS key that encrypts the nodes' volumes: the topology's, or one that the account has chosen for all.

The volumes of GPU nodes are always encrypted, those of EMR where the topology names a key. Auto Scaling may use a key
only where that key's policy or a grant says so, and EC2's dry run does not find that.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.lifecycle.rules import PreflightContext

_AWS_KEY = "alias/aws/ebs"
USES = "kms:CreateGrant, kms:Decrypt, kms:DescribeKey, kms:Encrypt, kms:GenerateDataKey* and kms:ReEncrypt*"
"""What a key's policy must allow those who start instances."""
_GRANTING = ("kms:creategrant", "kms:create*", "kms:*", "*")


def key_unusable(context: PreflightContext) -> Iterator[str]:
    """The key does not exist, does not encrypt, or does not let Auto Scaling start nodes with it."""
    if (name := _key(context)) is None:
        return
    try:
        key = context.account.client("kms").describe_key(KeyId=name)["KeyMetadata"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise
        yield f"{_named(context, name)} does not exist for your credentials; {_instead(context)}"
        return
    if key["KeyManager"] == "AWS":
        return
    named, spec = _named(context, key["Arn"]), key.get("KeySpec", "SYMMETRIC_DEFAULT")
    if (key["KeyState"], spec) != ("Enabled", "SYMMETRIC_DEFAULT"):
        yield f"{named} is {key['KeyState']} and {spec}, so no node would start; enable it, or {_instead(context)}"
    elif context.topology.training and not _lets_in(context, key["Arn"], role := _scaling_role(context)):
        yield (
            f"{named} does not let Auto Scaling use it, so no GPU node would start; allow {role} in the key's policy "
            f"{USES} (where the role does not exist yet, create it first: aws iam create-service-linked-role "
            f"--aws-service-name autoscaling.amazonaws.com), or {_instead(context)}"
        )


def _key(context: PreflightContext) -> str | None:
    """The name of the key by which volumes are encrypted; None for AWS's own, and where none are."""
    if context.topology.kms_key or not context.topology.training:
        return context.topology.kms_key
    name: str = context.account.client("ec2").get_ebs_default_kms_key_id()["KmsKeyId"]
    return None if name == _AWS_KEY else name


def _scaling_role(context: PreflightContext) -> str:
    """The role by which Auto Scaling starts instances."""
    name = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
    return f"arn:aws:iam::{context.account.number()}:{name}"


def _lets_in(context: PreflightContext, key: str, role: str) -> bool:
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


def _named(context: PreflightContext, key: str) -> str:
    return (
        f"kms_key: {key}" if context.topology.kms_key else f"the KMS key {key}, by which the account encrypts volumes,"
    )


def _instead(context: PreflightContext) -> str:
    if context.topology.kms_key:
        return "write another key (docs/topologies.md has what its policy must allow)"
    region = context.topology.region
    return f"have AWS's own key encrypt them: aws ec2 reset-ebs-default-kms-key-id --region {region}"
