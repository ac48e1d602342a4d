"""What exists in an account and region, service by service, as the services' own list calls tell it.

This is the proof that a destroyed deployment left nothing. The easy mistake is to ask the tagging service: it misses
some types, so every kind that a deployment can create is listed by its own service.
"""

from collections.abc import Mapping

import boto3

from bootstrap.aws.account import Account
from bootstrap.removal.kinds import KINDS


def inventory(session: boto3.Session | None = None) -> dict[str, set[str]]:
    """Identifiers of everything that exists, by kind.

    Args:
        session: whose account and region; the environment's when None.

    Returns:
        A set for every kind of `KINDS`, empty where nothing of the kind exists. An account's own defaults (the
        default VPC, its roles) are among them: subtract an inventory of before.

    Raises:
        botocore.exceptions.ClientError: a service refuses to list.
    """
    account = Account(session)
    return {name: {identifier for identifier, _ in kind.things(account)} for name, kind in KINDS.items()}


def left_over(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """What is in `after` and was not in `before`, by kind; kinds of which nothing is left are not in it."""
    return {kind: left for kind, found in after.items() if (left := found - before.get(kind, set()))}
