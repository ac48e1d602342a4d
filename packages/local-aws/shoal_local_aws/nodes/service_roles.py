"""Service-linked roles, which do not exist in a new account.

A service creates its role when an account first uses the service, or a user creates the role. Before that, the policy
of a KMS key cannot name the role. Sources: github.com/particuleio/teks/issues/92 and
github.com/lightspin-tech/eks-creation-engine/issues/4, read on 2026-11-30. The emulator creates only the role of Auto
Scaling, because only policies of KMS keys need such a role to exist.
"""

import json
from typing import Any

from shoal_local_aws.seams import identity, keys, requests
from shoal_local_aws.seams.lookup import Operation
from shoal_local_aws.service import Record, parameter

AUTO_SCALING = "autoscaling.amazonaws.com"
_NAMES = {AUTO_SCALING: "AWSServiceRoleForAutoScaling"}
_INVALID = "Policy contains a statement with one or more invalid principals."


def install() -> None:
    """Give service-linked roles AWS's names, and make KMS refuse policies for roles that do not exist."""
    identity.operations.wrap("CreateServiceLinkedRole", _with_name_of_aws)
    for point in (keys.create_key, keys.put_key_policy):
        point.wrap(_with_existing_principals)


def provide(service: str) -> None:
    """Create the service-linked role of a service, unless it exists."""
    if _NAMES[service] not in identity.roles:
        identity.operations.now("CreateServiceLinkedRole")({"AWSServiceName": [service]})


def _with_name_of_aws(create: Operation) -> Operation:
    """Replace the name that ministack derives from the service by AWS's own name."""

    def created(request: Record) -> Any:
        known = set(identity.roles)
        status, headers, body = create(request)
        name = _NAMES.get(parameter(request, "AWSServiceName"), "")
        for other in set(identity.roles) - known if name else set[str]():
            role = identity.roles.pop(other)
            identity.roles[name] = {**role, "RoleName": name, "Arn": role["Arn"].replace(other, name)}
            body = body.replace(other.encode(), name.encode())
        return status, headers, body

    return created


def _with_existing_principals(answer: Operation) -> Operation:
    """Make an operation of KMS refuse a key policy that names a role that does not exist."""

    def answered(request: Record) -> Any:
        statements = json.loads(request.get("Policy") or "{}").get("Statement", [])
        for statement in statements if isinstance(statements, list) else [statements]:
            named = statement.get("Principal")
            arns = named.get("AWS", ()) if isinstance(named, dict) else ()
            for arn in [arns] if isinstance(arns, str) else arns:
                # Rule: A key policy names existing roles only. Source: botocore kms CreateKey.
                if ":role/" in arn and arn not in {role["Arn"] for role in identity.roles.values()}:
                    return requests.json_error("MalformedPolicyDocumentException", _INVALID)
        return answer(request)

    return answered
