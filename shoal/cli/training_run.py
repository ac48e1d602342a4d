"""Shared by `shoal train` and `shoal embed`: reads configuration and backend of a run from the options, and trains."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from common.errors import TrainingError, UsageError
from shoal.cli.command import given_words, typed_options
from shoal.cli.output import Result
from shoal.cli.output_folder import sole_writer
from shoal.cli.target import Target
from trainer.command_line import from_args
from trainer.config import TrainConfig

if TYPE_CHECKING:
    from shoal.runs.backend import Backend
    from shoal.runs.sources.source import DataSource

_DATA = Path("dataset")
"""Placeholder for the dataset's path, which the backend of the run sets."""


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


def backend_of(target: Target | Path | None, ranks: int | None, *, managed: bool = False) -> "Backend":
    """Return the backend of a run: a deployment's, the hosts in a file, or, without a `target`, this machine.

    `managed`: whether SageMaker is to train, even if the deployment has nodes. Raises UsageError if `ranks` is given
    although the run is not on this machine.
    """
    if target is None:
        from shoal.backends.local import LocalBackend

        return LocalBackend(ranks or 1)
    if ranks is not None:
        raise UsageError(
            "--nodes requires --local; a deployment uses all nodes of its topology, and --hosts "
            "uses all hosts of the file"
        )
    if isinstance(target, Path):
        from shoal.backends.hosts import HostsBackend
        from shoal.ssh.hosts_file import read_hosts

        return HostsBackend(read_hosts(target))
    from shoal.backends.attaching import backend_on

    return backend_on(target.deployment_with_warning(), managed=managed)


def run_training(
    ctx: click.Context, source: "DataSource", config: TrainConfig, backend: "Backend", launch: Mapping[str, Any]
) -> Result:
    """Train, and return the result of the command. `launch`: `detach`, and the limits of the nodes."""
    from shoal.cli.prediction import predict_run
    from shoal.cli.training_result import training_result
    from shoal.progress import Bars
    from shoal.runs.run import Limits
    from shoal.runs.train import train

    with sole_writer(config.output), Bars(unit="row"):
        summary = train(
            source,
            config,
            backend,
            detach=launch.get("detach", False),
            given=given_words(ctx),
            predict=predict_run,
            limits=Limits(**{name: value for name, value in launch.items() if name != "detach"}),
        )
    return training_result(summary, config.output)
