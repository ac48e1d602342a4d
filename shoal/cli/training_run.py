"""Shared by `shoal train` and `shoal embed`: reads configuration and place of a run from the options, and trains."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from common.errors import TrainingError, UsageError
from shoal.cli.command import given_words, typed_options
from shoal.cli.output_folder import sole_writer
from shoal.cli.target import Target, warn_of_deletion
from trainer.command_line import from_args
from trainer.config import TrainConfig

if TYPE_CHECKING:
    from shoal.backends.place import Place
    from shoal.runs.sources.source import DataSource

_DATA = Path("dataset")
"""Placeholder for the dataset's path, which the place of the run sets."""


def config_of(
    ctx: click.Context, defaults: Mapping[str, Any] = MappingProxyType({}), *, endless: bool = False
) -> TrainConfig:
    """Return the configuration from the command's options. Raises UsageError for invalid values.

    `defaults`: the command's own defaults. `endless`: whether the source is an unbounded stream.
    """
    try:
        config = from_args(Namespace(**{**defaults, **typed_options(ctx), "data": _DATA}), endless=endless)
    except TrainingError as error:
        raise UsageError(str(error)) from error
    if config.resume and config.force:
        raise UsageError("--resume continues a run, and --force starts a new run; give only one of them")
    return config


def place_of(
    target: Target | Path | None, ranks: int | None, launch: Mapping[str, Any] = MappingProxyType({})
) -> "Place":
    """Return the place of the run: a deployment, the hosts in a file, or, without a `target`, this machine.

    `launch`: launch options for a deployment or hosts. `max_dollars` defaults to the limit of the deployment's
    topology. Raises UsageError if `ranks` is given although the run is not on this machine.
    """
    if target is None:
        from shoal.backends.local import LocalPlace

        return LocalPlace(ranks or 1)
    if ranks is not None:
        raise UsageError(
            "--nodes requires --local; a deployment uses all nodes of its topology, and --hosts "
            "uses all hosts of the file"
        )
    from shoal.runs.run import LaunchOptions

    if isinstance(target, Path):
        from shoal.backends.hosts import HostsPlace
        from shoal.ssh.hosts_file import read_hosts

        return HostsPlace(read_hosts(target), LaunchOptions(**launch))
    from shoal.aws.deployment import find_deployment
    from shoal.backends.attaching import place_on

    deployment = find_deployment(target.name, target.account)
    warn_of_deletion(deployment)
    most = launch.get("max_dollars") or deployment.max_dollars
    return place_on(deployment, LaunchOptions(**{**launch, "max_dollars": most}))


def run_training(ctx: click.Context, source: "DataSource", config: TrainConfig, place: "Place") -> dict[str, Any]:
    """Train and return the run's summary."""
    from shoal.backends.train import train
    from shoal.cli.prediction import predict_run
    from shoal.progress import Bars

    with sole_writer(config.output), Bars(unit="row"):
        return train(source, config, place, given=given_words(ctx), predict=predict_run)
