"""What commands about one existing deployment share: its name, given bare or by --deployment, and its region.

The region is not left to boto3, which reads AWS_DEFAULT_REGION and not AWS_REGION, the variable that AWS's other tools
go by.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import option
from bootstrap.errors import UsageError

if TYPE_CHECKING:
    from bootstrap.aws.account import Account
    from bootstrap.lifecycle.guard import GuardReport


_REGION = "its region (default: that of your AWS configuration, or else us-east-1)"
_WHERE = "Where"
_WHICH = "the deployment (`shoal deploy` prints its name: the topology's, unless another was given)"


@dataclass(frozen=True)
class Target:
    """The deployment that a command is about, as it was named on the command line, and where to look for it."""

    typed: str | None
    region: str | None
    command: str

    @property
    def name(self) -> str:
        """The deployment's name. Raises UsageError for none, or for what cannot be one."""
        if not self.typed:
            raise UsageError(f"which deployment? write: shoal {self.command} NAME")
        return checked(self.typed)

    @property
    def account(self) -> "Account":
        """The account and region to look in."""
        return account_of(self.region)


def target_options(function: Callable[..., int]) -> Callable[..., int]:
    """Declare a deployment's name, bare or by --deployment, and its region; the function is given a `target`."""

    @click.argument("name", required=False, metavar="[NAME]", help=_WHICH)
    @option("--deployment", metavar="NAME", help="the same")
    @option("--region", metavar="REGION", help=_REGION)
    @click.pass_context
    @wraps(function)
    def with_target(
        ctx: click.Context, /, *, name: str | None, deployment: str | None, region: str | None, **given: Any
    ) -> int:
        from infra import topology

        typed = topology.name_of(name) if name else None  # what is named after its topology may be given by its file
        if typed and deployment and typed != deployment:
            raise UsageError(f"which deployment, '{typed}' or '{deployment}'? name one")
        return function(target=Target(typed or deployment, region, str(ctx.info_name)), **given)

    return with_target


def where_options(function: Callable[..., int]) -> Callable[..., int]:
    """Declare the choice between this machine and a deployment; the function is given a `target`, or None for here."""

    @option("--local", is_flag=True, group=_WHERE, help="on this machine")
    @option("--deployment", metavar="NAME", group=_WHERE, help=_WHICH)
    @option("--region", metavar="REGION", group=_WHERE, help=_REGION)
    @click.pass_context
    @wraps(function)
    def with_target(
        ctx: click.Context, /, *, local: bool, deployment: str | None, region: str | None, **given: Any
    ) -> int:
        if local == (deployment is not None):
            raise UsageError(f"where? write: shoal {ctx.info_name} with either --local or --deployment NAME")
        if local and region is not None:
            raise UsageError("--region goes with --deployment; with --local AWS's own configuration names it")
        return function(target=None if local else Target(deployment, region, str(ctx.info_name)), **given)

    return with_target


def checked(name: str) -> str:
    """A deployment's name as it was given. Raises UsageError for what cannot be one."""
    from infra import topology
    from infra.errors import TopologyError

    try:
        return topology.check_deployment(name)
    except TopologyError as error:
        raise UsageError(str(error)) from error


def account_of(region: str | None) -> "Account":
    """The account, and this region of it; by default that of the environment or of AWS's configuration."""
    from bootstrap.aws.account import Account, connect
    from infra.topology import Topology

    region = region or os.environ.get("AWS_REGION") or connect().region_name
    return Account(connect(region or Topology.model_fields["region"].default))


def dollars(amount: float | None, per: str = "") -> str:
    """An amount as a person reads it; a dash where nobody knows it."""
    return "-" if amount is None else f"${amount:,.2f}{per}"


def time(moment: datetime | None) -> str:
    """A time as a person reads it."""
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def spent(guard: "GuardReport") -> str:
    """What a guard has counted, as a person reads it."""
    if guard.spent is None:
        return "nothing counted yet"
    budget = f" of {dollars(guard.budget)}" if guard.budget else ""
    return f"{dollars(guard.spent)}{budget} as of {time(guard.as_of)}"
