"""Options as data: their description for front ends, and checks of their values."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import pytest

from common.errors import TrainingError
from trainer.config import TrainConfig
from trainer.options.section import ABOVE_0, Section, option, options


@dataclass(frozen=True, kw_only=True)
class Sizes(Section):
    title: ClassVar[str] = "sizes"

    width: int = option("how wide", default=3, must=ABOVE_0, aliases=("--w",))
    colour: str | None = option("which", default=None, choices=("red", "blue"))


@dataclass(frozen=True, kw_only=True)
class Places(Section):
    title: ClassVar[str] = "places"

    near: bool = option("whether it is", default=False)


@dataclass(frozen=True, kw_only=True)
class Both(Sizes, Places):
    """Combines two sections."""


def test_options_are_listed_by_section_with_their_groups_and_help_ends_with_the_default():
    listed = [(each.name, each.group, each.flags, each.kind, each.help) for each in options(Both)]
    assert listed == [
        ("width", "sizes", ("--width", "--w"), int, "how wide (default: 3)"),
        ("colour", "sizes", ("--colour",), str, "which"),
        ("near", "places", ("--near",), bool, "whether it is"),
    ]
    width, colour, _ = options(Both)
    assert (width.aliases, colour.choices) == (("--w",), ("red", "blue"))


@pytest.mark.parametrize("name", ["width", "colour"])
def test_each_section_checks_its_own_values(name, messages):
    with messages.raises(TrainingError):
        Both(**{name: {"width": 0, "colour": "green"}[name]})


def test_each_option_of_a_run_is_in_one_section():
    names = [each.name for each in options(TrainConfig)]
    assert sorted(names) == sorted(entry.name for entry in fields(TrainConfig) if entry.metadata["text"])
    assert [each.name for each in options(TrainConfig) if each.required] == ["data", "output", "model"]
    assert all(each.text for each in options(TrainConfig))


def test_plain_values_can_be_json():
    assert Both(colour="red").plain() == {"width": 3, "colour": "red", "near": False}
    assert TrainConfig(model="lstm", data=Path("d"), output=Path("o")).plain()["data"] == "d"
