"""Rules on what must exist or must not: the stack of this name, the EMR release, the CDK's stack.

An existing deployment is an obstacle only if it has another owner or another topology.
"""

import re
from collections.abc import Iterator
from typing import Any

from bootstrap.aws.stacks import describe, name_conflict
from bootstrap.lifecycle.rules import PreflightContext
from infra import topology

_CDK_VERSION = "/cdk-bootstrap/hnb659fds/version"
"""The parameter by which the CDK's bootstrap stack is found; its middle part is the CDK's default qualifier."""
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
    """`cdk bootstrap` has not run in this account and region; `shoal deploy` runs it."""
    if not is_bootstrapped(context.account.client("ssm")):
        yield (
            f"the account is not yet prepared for the CDK in {context.topology.region}; `shoal deploy` does that "
            "first (`cdk bootstrap`: the stack CDKToolkit, a bucket and roles, which stay)."
        )


def is_bootstrapped(ssm: Any) -> bool:
    """Whether `cdk bootstrap` has run in the account and region of this SSM client."""
    return bool(ssm.get_parameters(Names=[_CDK_VERSION])["Parameters"])
