"""Inventory of all resources in an account and region, from the list calls of each service.

The inventory proves that a destroyed deployment left nothing. Do not use AWS's tagging service here, because it omits
some resource types.
"""

from collections.abc import Mapping

import boto3

from shoal.aws.account import Account
from shoal.deployments.removal.kinds import KINDS


def inventory(session: boto3.Session | None = None) -> dict[str, set[str]]:
    """Return the identifiers of all existing resources, by kind.

    Args:
        session: Session for the account and region, by default from the environment.

    Returns:
        A set for every kind of `KINDS`, possibly empty. The sets include the account's defaults (the default VPC, AWS's
        roles). To exclude these, subtract an earlier inventory.

    Raises:
        botocore.exceptions.ClientError: A service refuses to list.
    """
    account = Account(session)
    return {name: {identifier for identifier, _ in kind.records(account)} for name, kind in KINDS.items()}


def left_over(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return, by kind, the identifiers that are in `after` but not in `before`. Kinds without such identifiers are left
    out."""
    return {kind: left for kind, found in after.items() if (left := found - before.get(kind, set()))}
