"""All public names are on the reference page and have docstrings with parameters and errors."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
import shoal_guard
import shoal_local_aws.account
import shoal_local_aws.testing

import shoal

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"


def public_names() -> list[str]:
    """Return the names on the page."""
    return re.findall(r"^::: ([\w.]+)$", PAGE.read_text("utf-8"), re.MULTILINE)


def test_the_reference_page_lists_all_public_names() -> None:
    packages = (shoal, shoal_guard, shoal_local_aws.account, shoal_local_aws.testing)
    offered = {f"{package.__name__}.{name}" for package in packages for name in package.__all__}
    assert offered - set(public_names()) == set()


@pytest.mark.parametrize("name", public_names())
def test_public_names_are_importable_and_documented(name: str) -> None:
    module, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(module), last)
    text = found.__doc__ or ""
    assert text
    if inspect.isfunction(found):
        assert [each for each in inspect.signature(found).parameters if f" {each}: " not in text] == []
        assert " Raises:\n" in text
