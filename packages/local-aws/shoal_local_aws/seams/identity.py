"""IAM and STS: users, roles, sessions, and the evaluation of policies for a request."""

import re
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from shoal_local_aws.seams.lookup import MinistackModule, PatchPoint, Record, Table

_evaluator, _iam, _sts = (
    MinistackModule("core.iam_evaluator"),
    MinistackModule("services.iam"),
    MinistackModule("services.sts"),
)
_tagging = MinistackModule("services.tagging")

Enforce = Callable[..., Any]

users: Table = _iam.take("_users")
roles: Table = _iam.take("_roles")
access_keys: Table = _iam.take("_access_keys")
instance_profiles: Table = _iam.take("_instance_profiles")

managed_policies: dict[str, Record] = _iam.take("_aws_managed_policies")
"""AWS managed policies by ARN."""

policy_exists: Callable[[str], bool] = _iam.take("_policy_exists")
"""Returns whether there is a managed policy with this ARN, either AWS's own or one of the account."""

managed_policy: Callable[[str, str], Record] = _iam.take("_make_aws_managed_record")
"""Returns the record of an AWS managed policy. Arguments: name, policy document as JSON."""

register_session: Callable[[str, Record], None] = _sts.take("register_session")
"""Registers temporary credentials. Arguments: access key, record with `Arn`, `UserId`, `SecretAccessKey`,
`SessionToken` and `Expiration` (Unix seconds)."""

enforce: PatchPoint[Enforce] = PatchPoint("enforce", _evaluator)
"""Returns None if a request is allowed, and a refusal otherwise. Arguments: access key, action, service, region,
`resource_arn`, `service_context`."""

resolve: Callable[..., Any] = _evaluator.take("resolve_principal")
"""Returns the principal that owns an access key in an account, with its `arn`; or an `AuthError` for an invalid key."""

credential: Callable[..., Any] = _evaluator.take("resolve_credential")
"""Returns the credentials with an access key."""

verified_key: ContextVar[str] = _evaluator.take("_verified_key")
"""Access key that signed the current request."""

is_root: Callable[[str], bool] = _evaluator.take("is_root_access_key")
"""Returns whether an access key belongs to the account's root."""

evaluate: Callable[..., Any] = _evaluator.take("evaluate")
"""Evaluates policies (each a list of statements) for a request. The result has a `decision`."""

evaluate_policy: Callable[[Any, Any], Any] = _evaluator.take("evaluate_resource_policy")
"""Evaluates a resource policy, which names principals, for a request."""

_key: Callable[[str, Any], Any] = _evaluator.take("_resolve_condition_key")
_VARIABLE = re.compile(r"\$\{([\w:/-]+)\}")


def _filled(value: Any, asked: Any) -> Any:
    """Replace variables in strings by the values of condition keys, which ministack does not do."""
    # Rule: Conditions and resources may contain variables. Source: "IAM policy elements: Variables and tags", IAM User
    # Guide, read 2026-11-30.
    if isinstance(value, dict):
        return {key: _filled(each, asked) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, asked) for each in value]
    return _VARIABLE.sub(lambda found: str(_key(found[1], asked)), str(value))


def _with_variables(met: Callable[[Record, Any], bool]) -> Callable[[Record, Any], bool]:
    return lambda conditions, asked: met(_filled(conditions, asked), asked)


def _with_variables_in_resources(match: Callable[..., Any]) -> Callable[..., Any]:
    def matched(asked: Any, statements: list[Any], effect: str) -> Any:
        filled = (replace(each, resources=_filled(each.resources, asked)) for each in statements)
        return match(asked, filled, effect)

    return matched


_conditions: PatchPoint[Callable[[Record, Any], bool]] = PatchPoint("_conditions_met", _evaluator)
_conditions.wrap(_with_variables)
_first_match: PatchPoint[Callable[..., Any]] = PatchPoint("_first_match", _evaluator)
_first_match.wrap(_with_variables_in_resources)

asked: Callable[..., Any] = _evaluator.take("EvalContext")
statement: Callable[..., Any] = _evaluator.take("ParsedStatement")

parse: Callable[[Any], list[Any]] = _evaluator.take("parse_policy_document")
"""Returns the statements of a policy document."""

denial: Callable[[str, str, str, bool], str] = MinistackModule("core.iam_actions").take("identity_denial_message")
"""Returns the message of a refusal. Arguments: action, principal, resource, whether a policy has an explicit denial."""

refused: Callable[..., Any] = _evaluator.take("AuthError")
"""Class for an authentication failure with a code and a message."""

resource: PatchPoint[Callable[..., str]] = PatchPoint("extract_resource_arn", MinistackModule("core.iam_actions"))
"""Returns the ARN of a request's resource. Arguments: service, method, path, headers, body, query, region, account."""

tags_of: Callable[[str], dict[str, str] | None] = _tagging.take("resource_tags")
"""Returns the tags of the resource with an ARN, or None for an unknown resource."""

tags_of_service: dict[str, Callable[[], Any]] = _tagging.take("_RESOURCE_TAG_COLLECTORS")
"""Functions that list the ARNs and tags of all resources of a service, by service."""

authenticate_only: PatchPoint[Callable[..., Any]] = PatchPoint("_authenticate_only", MinistackModule("app"))
"""Checks the credentials of a request without an IAM action, and returns None if they are valid. Arguments: service,
headers, query, id."""
