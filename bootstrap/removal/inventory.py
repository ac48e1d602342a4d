"""Lists what exists in an account and region, by the services' own list calls.

This is the proof that a destroyed deployment left nothing. Do not use the tagging service here, because it misses some
types.
"""

from collections.abc import Mapping

import boto3

from bootstrap.aws.account import Account
from bootstrap.removal.ownership import KINDS


def inventory(session: boto3.Session | None = None) -> dict[str, set[str]]:
    """Identifiers of everything that exists, by kind.

    Args:
        session: whose account and region; the environment's when None.

    Returns:
        A set for every kind of `KINDS`, empty where nothing of the kind exists. It includes the account's defaults
        (the default VPC, AWS's roles): subtract an earlier inventory.

    Raises:
        botocore.exceptions.ClientError: a service refuses to list.
    """
    account = Account(session)
    return {name: {identifier for identifier, _ in kind.things(account)} for name, kind in KINDS.items()}


def left_over(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """What is in `after` and not in `before`, by kind, without the kinds of which nothing is left."""
    return {kind: left for kind, found in after.items() if (left := found - before.get(kind, set()))}
