"""Fixtures of the tests for reading: an S3 bucket, and retries without waiting."""

import pytest

from corpus.reading import s3, storage


@pytest.fixture(autouse=True)
def retry_at_once(monkeypatch) -> None:
    monkeypatch.setattr(storage, "FIRST_WAIT_S", 0.001)


@pytest.fixture(scope="module")
def pile(aws):
    """Yield the embedded AWS, in which the bucket `pile` exists."""
    s3.client().create_bucket(Bucket="pile")
    return aws
