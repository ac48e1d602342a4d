"""Fixtures of the tests of jobs: even small files are read by several tasks at once."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def small_tasks_use_all_cores():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.pipeline.CORE_BYTES", 1)
        yield
