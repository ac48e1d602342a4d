"""Fixtures of the tests of jobs: even small files are read by several tasks at once."""

import pytest

from corpus.reading import s3


@pytest.fixture(autouse=True, scope="module")
def small_tasks_use_all_cores():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.local.CORE_BYTES", 1)
        yield


@pytest.fixture(scope="module")
def pile(aws):
    """Yield the embedded AWS, in which the bucket `pile` exists."""
    s3.client().create_bucket(Bucket="pile")
    return aws
