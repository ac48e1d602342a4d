"""Free memory, where the kernel tells it and where it does not."""

import os
from pathlib import Path

import pytest

from trainer.distributed import memory


def test_without_meminfo_half_of_the_memory_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda _: False)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 100}.__getitem__)
    assert memory.free() == 4096 * 50
