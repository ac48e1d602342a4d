"""IAM policies of the users and services that use Shoal in an account.

Each policy is a YAML file in this folder. A statement can have the key `unexercised`, which gives the reason, by action
or resource, for each grant that no recorded request needs.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

QUALIFIER, TOOLKIT_STACK = "shoal", "ShoalToolkit"
"""The qualifier in the names of the roles and the bucket that `cdk bootstrap` creates, and the name of the stack that
contains them. The qualifier and this name are also in cdk.json."""
USER, BOUNDARY = "ShoalUser", "ShoalBoundary"
"""Names of the policy for users, and of the permissions boundary for the roles of a deployment."""
EXECUTION = ("ShoalExecutionNames", "ShoalExecutionCompute")
"""Names of the policies for CloudFormation's execution role (`cdk bootstrap --cloudformation-execution-policies`). The
name ShoalExecution belongs to the policy of earlier versions, which is still needed to delete their stacks."""
TOOLKIT = "ShoalToolkit"
"""Name of the permissions boundary for the roles that `cdk bootstrap` creates (`--custom-permissions-boundary`)."""
POLICIES = (USER, *EXECUTION, BOUNDARY, TOOLKIT)
MOST_CHARACTERS = 6144
"""Maximum number of characters in a managed policy, not counting white space (page "IAM and AWS STS quotas")."""
_REASONS = "unexercised"


def document(policy: str) -> dict[str, Any]:
    """Return the document of a policy. `policy` is one of POLICIES."""
    statements = [{key: part for key, part in each.items() if key != _REASONS} for each in _statements(policy)]
    return {"Version": "2012-10-17", "Statement": statements}


def reasons(policy: str) -> dict[str, dict[str, str]]:
    """Return the reasons for grants that no recorded request needs: a mapping from Sid to a mapping from action or
    resource to reason."""
    return {each["Sid"]: dict(each.get(_REASONS, {})) for each in _statements(policy)}


@cache
def _statements(policy: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / f"{policy}.yaml").read_text("utf-8"))
    return found
