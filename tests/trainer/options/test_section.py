"""Options as data: their description for front ends, and checks of their values."""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, ClassVar

import pytest

from common.checked_values import one_of
from common.errors import TrainingError
from trainer.config import TrainConfig, configured, options_of_model, sections_of
from trainer.options.section import Count, Section, option, options
from trainer.registry import MODELS


@dataclass(frozen=True, kw_only=True)
class Sizes(Section):
    title: ClassVar[str] = "sizes"

    width: Count = option("how wide", default=3, aliases=("--w",))
    depth: float = option("", default=1)
    colour: Annotated[str, one_of(("red", "blue"))] | None = option("which", default=None, group="paint")


@dataclass(frozen=True, kw_only=True)
class Places(Section):
    title: ClassVar[str] = "places"

    near: bool = option("whether it is", default=False)


@dataclass(frozen=True, kw_only=True)
class Room(Section):
    """Composes two sections."""

    sizes: Sizes = option("")
    places: Places = option("")


def test_options_are_listed_by_section_with_their_groups_and_help_ends_with_the_default():
    found = options(Room, sizes=Sizes, places=Places)
    assert [(each.name, each.group, each.flags, each.kind, each.help) for each in found] == [
        ("width", "sizes", ("--width", "--w"), int, "how wide (default: 3)"),
        ("colour", "paint", ("--colour",), str, "which"),
        ("near", "places", ("--near",), bool, "whether it is"),
    ]


WRONG = [("width", 0), ("width", 10**13), ("width", "3"), ("width", True), ("colour", "green"), ("depth", math.nan)]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_each_section_checks_its_own_values(name, value, messages):
    with messages.raises(TrainingError):
        Sizes(**{name: value})


def test_the_options_of_a_model_are_all_settings_with_a_text():
    for model in MODELS:
        declared = options_of_model(model)
        kinds = (TrainConfig, *sections_of(model).values())
        assert {*declared} == {entry.name for kind in kinds for entry in fields(kind) if entry.metadata["text"]}
        assert [each.name for each in declared.values() if each.required] == ["data", "output", "model"]


def test_plain_values_can_be_json():
    room = Room(sizes=Sizes(colour="red"), places=Places())
    assert room.plain() == {"width": 3, "depth": 1, "colour": "red", "near": False}
    assert configured({"model": "lstm", "data": Path("d"), "output": Path("o")}).plain()["data"] == "d"
