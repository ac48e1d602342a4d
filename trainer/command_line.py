"""The options of a training run on a command line, by argparse."""

import argparse
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from corpus.errors import DataError
from corpus.stream.settings import read_settings
from trainer.config import TrainConfig, configured
from trainer.errors import TrainingError
from trainer.options import Option, flag, options
from trainer.presets import OF_THE_RUN


def add_arguments(parser: argparse.ArgumentParser, leave_out: Collection[str] = ()) -> None:
    """Add every option of a run, in the groups of its sections, but for those that the caller declares otherwise."""
    groups: dict[str, Any] = {}
    for each in options(TrainConfig):
        if each.name not in leave_out:
            group = groups.get(each.group) or groups.setdefault(each.group, parser.add_argument_group(each.group))
            group.add_argument(each.flag, *each.aliases, dest=each.name, **_how(each))


def from_args(args: argparse.Namespace, *, endless: bool = False) -> TrainConfig:
    """The configuration that parsed arguments ask for; `endless`: on text that keeps coming. Raises TrainingError for
    values that cannot be."""
    given = {each.name: getattr(args, each.name) for each in options(TrainConfig) if each.name in args}
    for each in options(TrainConfig):
        if each.several and each.name in given:
            given[each.name] = (dict if each.name == "slow" else tuple)(given[each.name])
    return configured(given, endless=endless)


def as_arguments(config: TrainConfig) -> list[str]:
    """The command line that `from_args` reads as this configuration, for a launcher to pass on to its ranks."""
    line: list[str] = []
    for each in options(TrainConfig):
        value = getattr(config, each.name)
        if config.preset and each.name in OF_THE_RUN:
            continue
        if value is True:
            line.append(each.flag)
        elif each.name == "slow":
            line += [flag("slow"), *(f"{rank}:{slowed}" for rank, slowed in value.items())] if value else []
        elif each.several:
            line += [each.flag, *map(str, value)] if value else []
        elif value is not None and value is not False:
            line += [each.flag, str(value)]
    return line


def parse_arguments(arguments: Sequence[str] | None = None) -> TrainConfig:
    """The configuration of a command line; wrong use ends the process with status 2, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer",
        description="Train a sentiment model on a dataset. Started by torchrun, it runs on all ranks; without, on one.",
        epilog="Several ranks on this machine: python -m torch.distributed.run --standalone --nproc-per-node 2 "
        "-m trainer --data dataset.h5 --output results",
    )
    add_arguments(parser)
    asked = parser.parse_args(arguments)
    try:
        return from_args(asked, endless=_is_endless(asked.data))
    except TrainingError as error:
        parser.error(str(error))


def _is_endless(data: Path) -> bool:
    """Whether these data are text that keeps coming; False also where they are not there."""
    try:
        return read_settings(data).endless
    except DataError:
        return False  # a dataset, or what the task will not find either


def _how(of: Option) -> dict[str, Any]:
    """What argparse is told of an option."""
    how: dict[str, Any] = {"required": of.required, "default": argparse.SUPPRESS, "help": of.help}
    if of.kind is bool:
        return {**how, "action": "store_true"}
    if of.several:
        how |= {"nargs": "+", "action": "extend"}
    if of.choices:
        how["choices"] = of.choices
    if of.metavar:
        how["metavar"] = of.metavar
    return {**how, "type": _with_sentence(of.parse) if of.parse else of.kind}


def _with_sentence(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """`parse`, whose error argparse passes on to the user as it is."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed
