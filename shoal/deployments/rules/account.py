"""Rules for the account: its AWS plan (free or paid), and the CDK's bootstrap stack."""

from collections.abc import Iterator

from infra import topology
from infra.policies import QUALIFIER, TOOLKIT_STACK
from shoal.aws.account import Account
from shoal.deployments.rules import PreflightContext

_PLANS_REGION = "us-east-1"
"""Only region with an endpoint of the API for account plans."""
_CDK_VERSION = f"/cdk-bootstrap/{QUALIFIER}/version"
"""SSM parameter in which the CDK's bootstrap stack stores its version."""


def free_plan(context: PreflightContext) -> Iterator[str]:
    """Yield a message if the account has AWS's Free plan, with which EC2 starts no instance type of the catalog."""
    state = context.account.client("freetier", _PLANS_REGION).get_account_plan_state()
    if state["accountPlanType"] == "FREE":
        yield (
            "the account has AWS's Free plan, with which EC2 starts no "
            f"{' and no '.join(topology.instance_types(context.topology))}; upgrade to the Paid plan first: "
            f"aws freetier upgrade-account-plan --account-plan-type PAID --region {_PLANS_REGION}"
        )


def not_prepared(context: PreflightContext) -> Iterator[str]:
    """Yield a message if `shoal deploy` will run `cdk bootstrap` for this account and region."""
    if not is_prepared(context.account):
        yield (
            f"the account is not yet prepared for Shoal in {context.topology.region}; `shoal deploy` first runs `cdk "
            f"bootstrap` (the stack {TOOLKIT_STACK} with a bucket and roles, which is kept), for which you need "
            "permission to create roles."
        )


def is_prepared(account: Account) -> bool:
    """Return whether `cdk bootstrap` has run with Shoal's qualifier in this account and region."""
    return bool(account.client("ssm").get_parameters(Names=[_CDK_VERSION])["Parameters"])
