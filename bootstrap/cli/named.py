"""What verbs about one existing deployment share: its name, given bare or by --deployment, and where it is.

The easy mistake is to leave the region to boto3, which knows AWS_DEFAULT_REGION and not AWS_REGION, the variable that
AWS's other tools go by.
"""

import argparse
import os
from datetime import datetime
from typing import TYPE_CHECKING

from bootstrap.errors import UsageError

if TYPE_CHECKING:
    from bootstrap.aws.account import Account
    from bootstrap.lifecycle.guard import GuardState


_WHICH = "the deployment to work on (`shoal deploy` says its name: its topology's, unless another was given)"


def add_where(parser: argparse.ArgumentParser) -> None:
    """Declare the choice between this machine and a deployment."""
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--local", action="store_true", help="on this machine")
    where.add_argument("--deployment", metavar="NAME", help=_WHICH)
    _add_region(parser)


def add_name(parser: argparse.ArgumentParser) -> None:
    """Declare the deployment's name and its region."""
    parser.add_argument("name", nargs="?", metavar="NAME", help=_WHICH)
    parser.add_argument("--deployment", metavar="NAME", help="the same")
    _add_region(parser)


def _add_region(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--region", metavar="REGION", help="where it is (default: that of your AWS configuration, or else us-east-1)"
    )


def name_of(args: argparse.Namespace) -> str:
    """The deployment that was asked for; what is named after its topology may be given by the topology's file.

    Raises UsageError for none, for two, or for what cannot be a name.
    """
    from infra import topology

    name = topology.name_of(args.name) if args.name else None
    if name and args.deployment and name != args.deployment:
        raise UsageError(f"which deployment, '{name}' or '{args.deployment}'? name one")
    given = name or args.deployment
    if not given:
        raise UsageError(f"which deployment? write: shoal {args.verb} NAME")
    return checked(given)


def checked(name: str) -> str:
    """A deployment's name as it was given. Raises UsageError for what cannot be one."""
    from infra import topology
    from infra.errors import TopologyError

    try:
        return topology.check_deployment(name)
    except TopologyError as error:
        raise UsageError(str(error)) from error


def account_of(args: argparse.Namespace) -> "Account":
    """The account and region to look in."""
    from bootstrap.aws.account import Account, connect
    from infra.topology import Topology

    region = args.region or os.environ.get("AWS_REGION") or connect().region_name
    return Account(connect(region or Topology.model_fields["region"].default))


def dollars(amount: float | None, per: str = "") -> str:
    """An amount as a person reads it; a dash where nobody knows it."""
    return "-" if amount is None else f"${amount:,.2f}{per}"


def time(moment: datetime | None) -> str:
    """A time as a person reads it."""
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def spent(guard: "GuardState") -> str:
    """What a guard has counted, as a person reads it."""
    if guard.spent is None:
        return "nothing counted yet"
    budget = f" of {dollars(guard.budget)}" if guard.budget else ""
    return f"{dollars(guard.spent)}{budget} as of {time(guard.as_of)}"
