"""The policies of the people and the services that use Shoal in an account, as IAM takes them.

Each is a YAML file beside this one. A statement there may have `unexercised`: reasons by action or resource for grants
that no recorded request needs.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

QUALIFIER, TOOLKIT_STACK = "shoal", "ShoalToolkit"
"""Of `cdk bootstrap`: what its roles and bucket have in their names, and its stack. In cdk.json, too."""
USER, BOUNDARY = "ShoalUser", "ShoalBoundary"
"""Of whoever plans, deploys, runs and destroys; and the permissions boundary of the roles that a deployment has."""
EXECUTION = ("ShoalExecutionNames", "ShoalExecutionCompute")
"""Of CloudFormation's execution role, for `cdk bootstrap --cloudformation-execution-policies`. None is called
ShoalExecution, as the one policy of earlier versions was, with which their stacks are deleted."""
TOOLKIT = "ShoalToolkit"
"""The permissions boundary of the roles of `cdk bootstrap`, for its `--custom-permissions-boundary`."""
POLICIES = (USER, *EXECUTION, BOUNDARY, TOOLKIT)
MOST_CHARACTERS = 6144
"""Of a managed policy, without white space (IAM and AWS STS quotas)."""
_REASONS = "unexercised"


def document(policy: str) -> dict[str, Any]:
    """The policy document of this name: one of POLICIES."""
    statements = [{key: part for key, part in each.items() if key != _REASONS} for each in _statements(policy)]
    return {"Version": "2012-10-17", "Statement": statements}


def reasons(policy: str) -> dict[str, dict[str, str]]:
    """Why a policy has grants that no recorded request needs: by statement's Sid, then action or resource."""
    return {each["Sid"]: dict(each.get(_REASONS, {})) for each in _statements(policy)}


@cache
def _statements(policy: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / f"{policy}.yaml").read_text("utf-8"))
    return found
