"""Rules on what must exist or must not: the stack of this name, the EMR release, the CDK's stack.

An existing deployment is an obstacle only if it has another owner or another topology.
"""

import re
from collections.abc import Iterator

from bootstrap.aws.account import Account
from bootstrap.aws.stacks import describe, name_conflict
from bootstrap.lifecycle.rules import PreflightContext
from common.errors import ShoalError
from infra import topology
from infra.policies import BOUNDARY, EXECUTION

DEFAULT_QUALIFIER = "hnb659fds"
"""That of `cdk bootstrap` without `--qualifier`."""
_CDK_PARAMETERS, _CDK_VERSION = "/cdk-bootstrap", re.compile(r"/cdk-bootstrap/([A-Za-z0-9_-]{1,10})/version")
"""Where each bootstrap stack of the CDK leaves its version, by its qualifier."""
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
    """`cdk bootstrap` has not run in this account and region, where `shoal deploy` runs it, or with several qualifiers
    of which none is the CDK's own."""
    try:
        prepared = qualifier(context.account) is not None
    except ShoalError as error:
        yield f"{error}."
        return
    if not prepared:
        yield (
            f"the account is not yet prepared for the CDK in {context.topology.region}; `shoal deploy` does that "
            "first (`cdk bootstrap`: the stack CDKToolkit, a bucket and roles, which stay). CloudFormation may then do "
            f"what Shoal's stacks need, by the policies {', '.join(EXECUTION)} and {BOUNDARY} (docs/permissions.md), "
            "and no more; where other apps of the CDK need more, run `cdk bootstrap` with a policy of your own before."
        )


def qualifier(account: Account) -> str | None:
    """The qualifier with which `cdk bootstrap` has run in this account and region: the CDK's own, or else the only
    other one; None where it has not run. Raises ShoalError where there are several others."""
    parameters = account.items("ssm", "get_parameters_by_path", "Parameters", Path=_CDK_PARAMETERS, Recursive=True)
    found = sorted({named[1] for each in parameters if (named := _CDK_VERSION.fullmatch(each["Name"]))})
    if len(found) < 2 or DEFAULT_QUALIFIER in found:
        return DEFAULT_QUALIFIER if DEFAULT_QUALIFIER in found else next(iter(found), None)
    raise ShoalError(
        f"the account is prepared for the CDK with several qualifiers, {', '.join(found)}; deploy with the one that is "
        "yours: cdk deploy -c topology=NAME -c @aws-cdk/core:bootstrapQualifier=QUALIFIER"
    )
