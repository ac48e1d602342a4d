"""Converts between command lines and the configuration of a training run, with argparse."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from common.errors import DataError, TrainingError
from common.options import argparse_argument, flag
from corpus.stream.stream_settings import read_settings
from trainer.config import TrainConfig, configured, implied_settings, options_of, options_of_model
from trainer.options.optimisation_options import KEPT_ON_RESUME
from trainer.registry import MODELS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every option of a run to a parser, with one argument group per section.

    An option that the user does not give is absent from the parsed namespace.
    """
    groups: dict[str, Any] = {}
    for each in options_of(tuple(MODELS)):
        group = groups.get(each.group) or groups.setdefault(each.group, parser.add_argument_group(each.group))
        group.add_argument(*each.flags, **{**argparse_argument(each), "default": argparse.SUPPRESS})


def from_args(args: argparse.Namespace, *, endless: bool = False) -> TrainConfig:
    """Return the configuration for parsed arguments.

    `endless`: the run trains on an unbounded stream. Raises TrainingError for invalid values.
    """
    given = {each.name: getattr(args, each.name) for each in options_of(tuple(MODELS)) if each.name in args}
    for each in options_of(tuple(MODELS)):
        if each.several and each.name in given:
            given[each.name] = (dict if each.name == "slow" else tuple)(given[each.name])
    return configured(given, endless=endless)


def as_arguments(config: TrainConfig) -> list[str]:
    """Return the command line that `from_args` converts to this configuration. Launchers pass it to ranks."""
    return [word for name, words in option_values(config).items() for word in (flag(name), *words)]


def option_values(config: TrainConfig) -> dict[str, tuple[str, ...]]:
    """Return the words of each option's value on a command line, by option name.

    An option is left out if its value has the same effect as the default.
    """
    option_words: dict[str, tuple[str, ...]] = {}
    implied, values = implied_settings(config.model, config.preset), config.values()
    for each in options_of_model(config.model).values():
        value = values[each.name]
        if each.name in KEPT_ON_RESUME and each.name not in config.fixed and value == implied.get(each.name):
            continue
        if value is None or value is False or value in ((), {}):
            continue
        if value is True:
            option_words[each.name] = ()
        elif each.name == "slow":
            option_words[each.name] = tuple(f"{rank}:{slowed}" for rank, slowed in value.items())
        else:
            option_words[each.name] = tuple(map(str, value)) if each.several else (str(value),)
    return option_words


def from_option_values(words: Mapping[str, Sequence[str]], *, endless: bool, **places: Path) -> TrainConfig:
    """Return the configuration for `words`, the output of `option_values`.

    The paths in `places`, keyed by option name, take precedence over `words`.

    Raises TrainingError for unknown options and invalid values.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_arguments(parser)
    known = {each.name for each in options_of(tuple(MODELS))}
    line: list[str] = []
    for name, values in {**words, **{name: (str(path),) for name, path in places.items()}}.items():
        if name not in known:
            raise TrainingError(f"{flag(name)} is not a training option")
        if any(each.startswith("-") for each in values) and not all(map(_is_number, values)):
            raise TrainingError(f"{flag(name)} has a value that begins with a dash")
        line += [flag(name), *values]
    return from_args(parser.parse_args(line), endless=endless)


class _Parser(argparse.ArgumentParser):
    """Parser that raises TrainingError for wrong usage."""

    def error(self, message: str) -> NoReturn:
        raise TrainingError(message)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def parse_arguments(arguments: Sequence[str] | None = None) -> TrainConfig:
    """Parse a command line. For wrong usage, print an error and exit with status 2, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer",
        description="Train a sentiment model on a dataset. torchrun starts one process per rank. Without "
        "torchrun, the process is the only rank.",
        epilog="Several ranks on this machine: python -m torch.distributed.run --standalone --nproc-per-node 2 "
        "-m trainer --data dataset.h5 --output results",
    )
    add_arguments(parser)
    parsed = parser.parse_args(arguments)
    try:
        return from_args(parsed, endless=_is_endless(parsed.data))
    except (DataError, TrainingError) as error:
        parser.error(str(error))


def _is_endless(data: Path) -> bool:
    """Return whether `data` is the folder of an unbounded stream; False if the path does not exist."""
    try:
        return read_settings(data).follow
    except DataError:
        return False  # a dataset, or a missing path, which the task reports
