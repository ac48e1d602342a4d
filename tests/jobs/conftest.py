"""Fixtures of the tests of jobs: even small files are read by several tasks at once."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def small_tasks_use_all_cores() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.pipeline.CORE_BYTES", 1)
        yield
