"""AWS on this machine, for the tests of other programs: their steps on EMR, and their CDK apps, really run.

A test that asks for the fixture `shoal_aws`, which is there wherever this package is installed beside pytest, gets a
session of an account of its own, in which nothing costs anything:

    def test_the_step_counts_words(shoal_aws):
        emr = shoal_aws.client("emr")

`shoal_local_aws.account.local_aws` is the same in a `with` block, without pytest, and makes services fail.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import boto3

__all__ = ["shoal_aws"]


@pytest.fixture(scope="module")
def shoal_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator["boto3.Session"]:
    """A session of AWS on this machine, for the tests of one file."""
    import boto3  # pytest loads this module in whatever it tests

    from shoal_local_aws.account import local_aws

    with local_aws(tmp_path_factory.mktemp("aws")):
        yield boto3.Session()
