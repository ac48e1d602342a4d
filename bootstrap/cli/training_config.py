"""The configuration of a training, of what was typed."""

from argparse import Namespace
from pathlib import Path

import click

from bootstrap.cli.command import typed_options
from bootstrap.errors import UsageError
from trainer.command_line import from_args
from trainer.config import TrainConfig
from trainer.errors import TrainingError


def config_of(ctx: click.Context, data: Path, *, endless: bool = False) -> TrainConfig:
    """The configuration that was typed, for this dataset; `endless`: for text that keeps coming. Raises UsageError for
    values that cannot be."""
    try:
        config = from_args(Namespace(**{**typed_options(ctx), "data": data}), endless=endless)
    except TrainingError as error:
        raise UsageError(str(error)) from error
    if config.resume and config.force:
        raise UsageError("--resume continues a run, and --force begins a new one; give one of them")
    return config
