"""What verbs about one existing deployment share: its name, given bare or by --deployment, and where it is."""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

from bootstrap.cli.output import DEFAULT_DEPLOYMENT_HELP
from bootstrap.errors import UsageError

if TYPE_CHECKING:
    from bootstrap.account import Account
    from bootstrap.guard import Guard


def add_name(parser: argparse.ArgumentParser) -> None:
    """Declare the deployment's name and its region."""
    parser.add_argument("name", nargs="?", metavar="NAME", help=DEFAULT_DEPLOYMENT_HELP)
    parser.add_argument("--deployment", metavar="NAME", help="the same")
    parser.add_argument("--region", metavar="REGION", help="where it is (default: that of your AWS configuration)")


def name_of(args: argparse.Namespace) -> str:
    """The deployment that was asked for. Raises UsageError for none, for two, or for what cannot be a name."""
    from infra import topology
    from infra.errors import TopologyError

    if args.name and args.deployment and args.name != args.deployment:
        raise UsageError(f"which deployment, '{args.name}' or '{args.deployment}'? name one")
    given = args.name or args.deployment
    if not given:
        raise UsageError(f"which deployment? write: shoal {args.verb} NAME")
    try:
        return topology.check_deployment(given)
    except TopologyError as error:
        raise UsageError(str(error)) from error


def account_of(args: argparse.Namespace) -> "Account":
    """The account and region to look in."""
    import boto3

    from bootstrap.account import Account

    session = boto3.Session(region_name=args.region)
    if session.region_name is None:
        raise UsageError("in which region? add --region REGION, or set AWS_REGION")
    return Account(session)


def dollars(amount: float | None, per: str = "") -> str:
    """An amount as a person reads it; a dash where nobody knows it."""
    return "-" if amount is None else f"${amount:,.2f}{per}"


def time(moment: datetime | None) -> str:
    """A time as a person reads it."""
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def spent(guard: "Guard") -> str:
    """What a guard has counted, as a person reads it."""
    if guard.spent is None:
        return "nothing counted yet"
    budget = f" of {dollars(guard.budget)}" if guard.budget else ""
    return f"{dollars(guard.spent)}{budget} as of {time(guard.as_of)}"


def plural(number: int, what: str) -> str:
    """So many of something."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")
