"""What Shoal offers to other programs is on one page, and its docstrings say what a name takes and raises."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
import shoal_guard
import shoal_local_aws.account
import shoal_local_aws.testing

import shoal

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "index.md"


def public_names() -> list[str]:
    """The names on the page."""
    return re.findall(r"^::: ([\w.]+)$", PAGE.read_text("utf-8"), re.MULTILINE)


def test_all_that_is_offered_is_on_the_page() -> None:
    packages = (shoal, shoal_guard, shoal_local_aws.account, shoal_local_aws.testing)
    offered = {f"{package.__name__}.{name}" for package in packages for name in package.__all__}
    assert offered - set(public_names()) == set()


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_can_be_imported_and_says_what_it_takes_and_raises(name: str) -> None:
    module, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(module), last)
    text = found.__doc__ or ""
    assert text
    if inspect.isfunction(found):
        assert [each for each in inspect.signature(found).parameters if f" {each}: " not in text] == []
        assert " Raises:\n" in text
