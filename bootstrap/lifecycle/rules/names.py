"""Rules on what must exist or must not: the stack of this name, the EMR release, the CDK's stack.

An existing deployment is an obstacle only if it has another owner or another topology.
"""

import re
from collections.abc import Iterator

from bootstrap.aws import policies
from bootstrap.aws.account import Account
from bootstrap.aws.stacks import describe, name_conflict
from bootstrap.lifecycle.rules import PreflightContext
from infra import topology
from infra.policies import EXECUTION, QUALIFIER, TOOLKIT_STACK

_CDK_VERSION = f"/cdk-bootstrap/{QUALIFIER}/version"
"""Where the CDK's bootstrap stack leaves its version."""
_SEVEN = re.compile(r"emr-7(\.[0-9]+)+")
"""The labels of EMR's releases 7."""


def name_taken(context: PreflightContext) -> Iterator[str]:
    """The other owner or topology to which the deployment belongs."""
    stack = describe(context.account.client("cloudformation"), topology.stack_name(context.deployment))
    sentence = name_conflict(stack, deployment=context.deployment, owner=context.owner, made_from=context.topology.name)
    if sentence:
        yield sentence


def old_account(context: PreflightContext) -> Iterator[str]:
    """Parameters of the guard that an earlier deployment of this name has left: those that exist without a stack."""
    if describe(context.account.client("cloudformation"), topology.stack_name(context.deployment)):
        return
    names = [topology.extension_parameter(context.deployment), topology.guard_parameter(context.deployment)]
    found = context.account.client("ssm").get_parameters(Names=names)["Parameters"]
    if found:
        left = " and ".join(each["Name"] for each in found)
        yield (
            f"an earlier deployment '{context.deployment}' has left {left}, which the guard would "
            f"continue from; remove them first: shoal destroy {context.deployment}"
        )


def no_such_release(context: PreflightContext) -> Iterator[str]:
    """The region does not have the EMR release; and the newest that it has."""
    cluster = context.topology.preprocessing
    if cluster is None:
        return
    labels = list(context.account.items("emr", "list_release_labels", "ReleaseLabels"))
    if cluster.release not in labels:
        sevens = [label for label in labels if _SEVEN.fullmatch(label)]
        newest = max(sevens, key=lambda label: [int(part) for part in label[4:].split(".")], default=None)
        hint = f"write {newest}" if newest else "choose another region"
        yield f"preprocessing, release: {context.topology.region} has no {cluster.release}; {hint}."


def not_prepared(context: PreflightContext) -> Iterator[str]:
    """`cdk bootstrap` has not run for Shoal in this account and region, where `shoal deploy` runs it."""
    if not is_prepared(context.account):
        yield (
            f"the account is not yet prepared for Shoal in {context.topology.region}; `shoal deploy` does that first "
            f"(`cdk bootstrap`: the stack {TOOLKIT_STACK}, a bucket and roles, which stay), for which you "
            "need the rights to create roles. CloudFormation may then do what Shoal's stacks need, by the policies "
            f"{' and '.join(EXECUTION)} (docs/permissions.md), and no more."
        )


def execution_may_more(context: PreflightContext) -> Iterator[str]:
    """CloudFormation's execution role has policies that Shoal does not need, such as AdministratorAccess."""
    if not is_prepared(context.account):
        return
    role = f"cdk-{QUALIFIER}-cfn-exec-role-{context.account.number()}-{context.topology.region}"
    found = context.account.items("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=role)
    more = {each["PolicyArn"] for each in found} - set(policies.execution(context.account))
    if more:
        yield (
            f"CloudFormation may do more in this account than Shoal needs, and so may everybody who deploys: its role "
            f"{role} has {', '.join(sorted(more))}; run `cdk bootstrap` again as docs/permissions.md has it."
        )


def is_prepared(account: Account) -> bool:
    """Whether `cdk bootstrap` has run with Shoal's qualifier in this account and region."""
    return bool(account.client("ssm").get_parameters(Names=[_CDK_VERSION])["Parameters"])
