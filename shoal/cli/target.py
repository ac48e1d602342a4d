"""Options that name a deployment and its region, or another place to run.

Do not leave the region to boto3: it reads AWS_DEFAULT_REGION but not AWS_REGION, which other AWS tools read.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.errors import UsageError
from common.options import Option, flag
from shoal.cli.command import MOST_RANKS, described_options, option
from shoal.cli.figures import deletion_text
from shoal.cli.output import print_warning

if TYPE_CHECKING:
    from shoal.aws.account import Account
    from shoal.aws.deployment import Deployment


_REGION = "AWS region (default: the region of your AWS configuration, or us-east-1)"
_WHERE = "Where"
_WHICH = "name of the deployment, as `shoal deploy` prints it"


@dataclass(frozen=True)
class Target:
    """Deployment and region that the command line names."""

    typed: str | None
    region: str | None
    command: str

    @property
    def name(self) -> str:
        """The deployment's name. Raises UsageError if it is missing or invalid."""
        if not self.typed:
            raise UsageError(f"the name of the deployment is missing; write: shoal {self.command} NAME")
        return check_name(self.typed)

    @property
    def account(self) -> "Account":
        """AWS account and region of the deployment."""
        return connect_account(self.region)

    @cached_property
    def deployment(self) -> "Deployment":
        """The deployment, as AWS describes it. Raises ShoalError if it does not exist."""
        from shoal.aws.deployment import find_deployment

        return find_deployment(self.name, self.account)

    def deployment_with_warning(self) -> "Deployment":
        """Return the deployment, for work on it. Print a warning if its guard has announced its deletion."""
        from shoal.deployments.deletion import announced_deletion

        if deletion := announced_deletion(self.deployment):
            print_warning(f"{self.name}: {deletion_text(deletion)}")
        return self.deployment


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that declares [NAME] and --region, and passes a `Target` as `target`."""

    @click.argument("name", required=False, metavar="[NAME]", help=_WHICH)
    @option("--region", metavar="REGION", help=_REGION)
    @click.pass_context
    @wraps(function)
    def with_target(ctx: click.Context, /, *, name: str | None, region: str | None, **options: Any) -> Any:
        return function(target=Target(name, region, str(ctx.info_name)), **options)

    return with_target


def where_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that declares --local, --deployment and --region, and passes `target`: None for this machine."""

    @option("--local", is_flag=True, group=_WHERE, help="run on this machine")
    @option("--deployment", metavar="NAME", group=_WHERE, help=_WHICH)
    @option("--region", metavar="REGION", group=_WHERE, advanced=True, help=_REGION)
    @click.pass_context
    @wraps(function)
    def with_target(
        ctx: click.Context, /, *, local: bool, deployment: str | None, region: str | None, **options: Any
    ) -> Any:
        hosts = options.pop("hosts", None)
        if sum((local, deployment is not None, hosts is not None)) != 1:
            places = (
                "--local, --deployment NAME or --hosts FILE"
                if "hosts" in ctx.params
                else "--local or --deployment NAME"
            )
            raise UsageError(f"choose where to run: shoal {ctx.info_name} with either {places}")
        if deployment is None and region is not None:
            raise UsageError("--region requires --deployment; without a deployment, set AWS_REGION")
        target = Target(deployment, region, str(ctx.info_name)) if deployment is not None else hosts
        return function(target=target, **options)

    return with_target


hosts_option = option(
    "--hosts",
    type=click.Path(path_type=Path),
    metavar="FILE",
    group=_WHERE,
    help="run on your own machines, over SSH. FILE has one line per host, user@host[:port] [gpus=N], and one "
    "line for the folder that all hosts share, folder=/PATH or folder=s3://BUCKET",
)
"""Decorator that declares --hosts. Apply it below `where_options`, which passes the path as `target`."""


local_ranks_option = option(
    "--nodes",
    group=_WHERE,
    type=click.IntRange(1, MOST_RANKS),
    metavar="N",
    help="with --local: number of ranks (default: 1)",
)
"""Decorator that declares --nodes, the ranks of a local run."""


def check_name(name: str) -> str:
    """Return a deployment's name. Raises UsageError if it is invalid."""
    from infra import topology
    from infra.topology_error import TopologyError

    try:
        return topology.check_deployment(name)
    except TopologyError as error:
        raise UsageError(str(error)) from error


def connect_account(region: str | None) -> "Account":
    """Return the AWS account in `region`. Default: AWS_REGION, else the AWS configuration's region, else us-east-1."""
    from infra.topology import Topology
    from shoal.aws.account import Account, connect

    region = region or os.environ.get("AWS_REGION") or connect().region_name
    return Account(connect(region or Topology.model_fields["region"].default))


_LAUNCH = (
    Option("detach", "not with --local: return as soon as the nodes start training", kind=bool),
    Option(
        "keep",
        "with --deployment: keep the nodes running after the training; the guard terminates them when they are idle",
        kind=bool,
        advanced=True,
    ),
    Option(
        "managed",
        "with --deployment: train in a SageMaker job, even if the topology has nodes",
        kind=bool,
        advanced=True,
    ),
)
_LAUNCH_NAMES = ("detach", "keep", "min_nodes", "managed", "max_dollars")


def launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that declares the launch options for a deployment, and passes the options that are set as `launch`."""

    @described_options(_LAUNCH, group=_WHERE)
    @option(
        "--min-nodes",
        type=click.IntRange(1),
        group=_WHERE,
        advanced=True,
        metavar="N",
        help="not with --local: if nodes are lost, continue with at least N nodes (default: 1)",
    )
    @option(
        "--max-dollars",
        type=click.FloatRange(0, min_open=True),
        group=_WHERE,
        metavar="X",
        help="with --deployment: stop with a checkpoint before the nodes cost more than X dollars at on-demand prices "
        "(default: max_dollars of the topology, if it is set)",
    )
    @wraps(function)
    def with_launch(**options: Any) -> Any:
        typed = {name: options.pop(name) for name in _LAUNCH_NAMES}
        given = {name: value for name, value in typed.items() if value}
        kept = () if options["target"] is None else ("detach", "min_nodes")
        refused = [] if isinstance(options["target"], Target) else [name for name in given if name not in kept]
        if refused:
            raise UsageError(f"{flag(refused[0])} requires --deployment")
        return function(launch=given, **options)

    return with_launch
