"""What tests of reading share: an S3 with a bucket, which is asked again without a wait."""

import pytest
from shoal_local_aws.aws import EmbeddedAws

from corpus.reading import s3, storage


@pytest.fixture(autouse=True)
def retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "FIRST_WAIT_S", 0.001)


@pytest.fixture(scope="module")
def pile(aws: EmbeddedAws) -> EmbeddedAws:
    """The embedded AWS with the bucket `pile`."""
    s3.client().create_bucket(Bucket="pile")
    return aws
