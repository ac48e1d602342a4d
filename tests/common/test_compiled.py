"""Functions are compiled with and without a cache folder."""

import pytest
from numba.core.caching import CacheImpl

from common.compiled import compiled


def twice(number):
    return 2 * number


@pytest.mark.parametrize("locators", [CacheImpl._locator_classes, []], ids=["a folder", "no folder"])
def test_a_function_is_compiled_without_a_cache_folder(monkeypatch: pytest.MonkeyPatch, locators: list) -> None:
    monkeypatch.setattr(CacheImpl, "_locator_classes", locators)
    made = compiled(twice)
    assert made(21) == 42
    assert made.signatures
