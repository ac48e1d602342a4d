"""IAM and STS: users, roles, sessions, and the check of a request against policies."""

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from shoal_local_aws.seams.lookup import MinistackModule, Record, Seam, Table

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
"""AWS's own policies, by their ARNs."""

policy_exists: Callable[[str], bool] = _iam.take("_policy_exists")
"""Whether there is a managed policy of this ARN, AWS's own or the account's."""

managed_policy: Callable[[str, str], Record] = _iam.take("_make_aws_managed_record")
"""The record of one of AWS's own policies: its name, its document as JSON."""

register_session: Callable[[str, Record], None] = _sts.take("register_session")
"""Makes temporary credentials valid: an access key, and its `Arn`, `UserId`, `SecretAccessKey`, `SessionToken`,
`Expiration` (seconds since 1970)."""

enforce: Seam[Enforce] = Seam("enforce", _evaluator)
"""Checks a request: access key, action, service, region, `resource_arn`, `service_context`. Returns None where it is
allowed."""

resolve: Callable[..., Any] = _evaluator.take("resolve_principal")
"""Who has an access key, in an account: its `arn`; an `AuthError` where the key is not valid."""

credential: Callable[..., Any] = _evaluator.take("resolve_credential")
"""The credentials that an access key belongs to."""

verified_key: ContextVar[str] = _evaluator.take("_verified_key")
"""The access key that has signed the current request."""

is_root: Callable[[str], bool] = _evaluator.take("is_root_access_key")
"""Whether an access key is that of the account's root."""

evaluate: Callable[..., Any] = _evaluator.take("evaluate")
"""Evaluates policies for what is `asked`; each is a list of `statement`s. The result has a `decision`."""

evaluate_policy: Callable[[Any, Any], Any] = _evaluator.take("evaluate_resource_policy")
"""Evaluates the policy of a resource, which names principals, for what is `asked`."""

_key: Callable[[str, Any], Any] = _evaluator.take("_resolve_condition_key")
_VARIABLE = re.compile(r"\$\{([\w:/-]+)\}")


def _with_variables(met: Callable[[Record, Any], bool]) -> Callable[[Record, Any], bool]:
    """Put condition keys in for the variables of conditions, which ministack compares as they are written (IAM User
    Guide, "IAM policy elements: Variables and tags", read 2026-11-29)."""

    def filled(value: Any, asked: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(each, asked) for key, each in value.items()}
        if isinstance(value, list):
            return [filled(each, asked) for each in value]
        return _VARIABLE.sub(lambda found: str(_key(found[1], asked)), str(value))

    return lambda conditions, asked: met(filled(conditions, asked), asked)


_conditions: Seam[Callable[[Record, Any], bool]] = Seam("_conditions_met", _evaluator)
_conditions.wrap(_with_variables)

asked: Callable[..., Any] = _evaluator.take("EvalContext")
statement: Callable[..., Any] = _evaluator.take("ParsedStatement")

parse: Callable[[Any], list[Any]] = _evaluator.take("parse_policy_document")
"""The statements of a policy's document."""

denial: Callable[[str, str, str, bool], str] = MinistackModule("core.iam_actions").take("identity_denial_message")
"""The sentence of a refusal: action, who asked, resource, and whether a policy denies it explicitly."""

refused: Callable[..., Any] = _evaluator.take("AuthError")
"""A failure to authenticate: its code and message."""

resource: Seam[Callable[..., str]] = Seam("extract_resource_arn", MinistackModule("core.iam_actions"))
"""The ARN of a request's resource: service, method, path, headers, body, query, region, account."""

tags_of: Callable[[str], dict[str, str] | None] = _tagging.take("resource_tags")
"""The tags of a resource, by its ARN; None where it is not known."""

tags_of_service: dict[str, Callable[[], Any]] = _tagging.take("_RESOURCE_TAG_COLLECTORS")
"""By service, what lists the ARNs of its resources with their tags."""

authenticate_only: Seam[Callable[..., Any]] = Seam("_authenticate_only", MinistackModule("app"))
"""Checks the credentials of a request that no action of IAM covers: service, headers, query, id. Returns None where
they are valid."""
