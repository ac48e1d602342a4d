"""Rule for the KMS key that encrypts the volumes of nodes: the key in the topology, or the account's default key for
EBS.

Volumes of GPU nodes are always encrypted. Volumes of EMR nodes are encrypted only if the topology names a key. Auto
Scaling needs permission from the key's policy or from a grant. EC2's dry run does not check this permission.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from shoal.deployments.rules import PreflightContext

_AWS_KEY = "alias/aws/ebs"
USES = "kms:CreateGrant, kms:Decrypt, kms:DescribeKey, kms:Encrypt, kms:GenerateDataKey* and kms:ReEncrypt*"
"""Actions that the policy of a key must allow for principals that start instances."""
_SCALING_ROLE = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
"""Role that Auto Scaling uses to start instances."""
_GRANTING = ("kms:creategrant", "kms:create*", "kms:*", "*")


def key_unusable(context: PreflightContext) -> Iterator[str]:
    """Yield a message if the key does not exist, cannot encrypt, or does not allow Auto Scaling to use it."""
    topology, kms = context.topology, context.account.client("kms")
    name = topology.kms_key
    label, instead = "kms_key:", "write a different key (docs/how-to/secure.md shows the policy that it needs)"
    if name is None and topology.training:
        name = context.account.client("ec2").get_ebs_default_kms_key_id()["KmsKeyId"]
        label = "the account's default KMS key for volumes,"
        reset = f"aws ec2 reset-ebs-default-kms-key-id --region {topology.region}"
        instead = f"change the default to AWS's own key: {reset}"
    if name in (None, _AWS_KEY):
        return
    try:
        key = kms.describe_key(KeyId=name)["KeyMetadata"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise
        yield f"{label} {name} does not exist for your credentials; {instead}"
        return
    if key["KeyManager"] == "AWS":
        return
    arn, spec, state = key["Arn"], key.get("KeySpec", "SYMMETRIC_DEFAULT"), key["KeyState"]
    if (spec, state) != ("SYMMETRIC_DEFAULT", "Enabled"):
        yield (
            f"{label} {arn} is {spec} and {state}, but volumes need a key that is SYMMETRIC_DEFAULT and Enabled, so no "
            f"node would start; enable it, or {instead}"
        )
        return
    role = f"arn:aws:iam::{context.account.number()}:{_SCALING_ROLE}"
    if topology.training and not _lets_in(context, arn, role):
        yield (
            f"{label} {arn} does not allow Auto Scaling to use it, so no GPU node would start; in the key's policy "
            f"allow {role} {USES} (if the role does not exist, create it first: aws iam create-service-linked-role "
            f"--aws-service-name autoscaling.amazonaws.com), or {instead}"
        )


def _lets_in(context: PreflightContext, key: str, role: str) -> bool:
    """Return whether the policy or a grant of a key (an ARN) allows a role to use it. Conditions are ignored."""
    text = context.account.client("kms").get_key_policy(KeyId=key, PolicyName="default")["Policy"]
    if any(_allows(statement, role) for statement in _listed(json.loads(text)["Statement"])):
        return True
    grants = context.account.items("kms", "list_grants", "Grants", KeyId=key)
    return any(grant.get("GranteePrincipal") == role for grant in grants)


def _allows(statement: Mapping[str, Any], principal: str) -> bool:
    """Return whether a policy statement allows a principal, or everybody, to create grants."""
    named = statement.get("Principal", ())
    principals = _listed(named.get("AWS", ()) if isinstance(named, Mapping) else named)
    actions = [action.lower() for action in _listed(statement.get("Action", ()))]
    return (
        statement["Effect"] == "Allow"
        and not {principal, "*"}.isdisjoint(principals)
        and not set(_GRANTING).isdisjoint(actions)
    )


def _listed(value: Any) -> list[Any]:
    """Return `value` as a list, because a policy can contain a single element in place of a list."""
    return list(value) if isinstance(value, list | tuple) else [value]
