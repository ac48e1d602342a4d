"""The stages of preprocessing that are measured."""

from importlib import import_module
from operator import attrgetter

import pytest

from benchmarks import stages

PLACES = [place for places in stages.STAGES.values() for place in places]


@pytest.mark.parametrize("place", PLACES)
def test_a_stage_names_a_function_that_is_there(place: str) -> None:
    module, _, name = place.partition(":")
    assert callable(attrgetter(name)(import_module(module)))
