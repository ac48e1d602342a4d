"""IAM policies of the users and services that use Shoal in an account.

Each is a YAML file in this folder. A statement may have `unexercised`: reasons, by action or resource, for grants that
no recorded request needs.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

QUALIFIER, TOOLKIT_STACK = "shoal", "ShoalToolkit"
"""Qualifier in the names of `cdk bootstrap`'s roles and bucket, and the name of its stack. Also in cdk.json."""
USER, BOUNDARY = "ShoalUser", "ShoalBoundary"
"""Policy of users, and permissions boundary of a deployment's roles."""
EXECUTION = ("ShoalExecutionNames", "ShoalExecutionCompute")
"""Policies of CloudFormation's execution role, for `cdk bootstrap --cloudformation-execution-policies`. The name
ShoalExecution is taken by the policy of earlier versions, which the deletion of their stacks needs."""
TOOLKIT = "ShoalToolkit"
"""Permissions boundary of `cdk bootstrap`'s roles, for its `--custom-permissions-boundary`."""
POLICIES = (USER, *EXECUTION, BOUNDARY, TOOLKIT)
MOST_CHARACTERS = 6144
"""Maximum size of a managed policy, without white space (IAM and AWS STS quotas)."""
_REASONS = "unexercised"


def document(policy: str) -> dict[str, Any]:
    """Return a policy document; `policy` is one of POLICIES."""
    statements = [{key: part for key, part in each.items() if key != _REASONS} for each in _statements(policy)]
    return {"Version": "2012-10-17", "Statement": statements}


def reasons(policy: str) -> dict[str, dict[str, str]]:
    """Return the reasons for grants that no recorded request needs, by Sid, then by action or resource."""
    return {each["Sid"]: dict(each.get(_REASONS, {})) for each in _statements(policy)}


@cache
def _statements(policy: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / f"{policy}.yaml").read_text("utf-8"))
    return found
