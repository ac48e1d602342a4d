"""pytest plugin with the fixture `shoal_aws`: an emulated AWS that really runs EMR steps and deploys CDK apps.

pytest finds the fixture wherever this package is installed. The fixture is a boto3 session for an emulated account:

    def test_the_step_counts_words(shoal_aws):
        emr = shoal_aws.client("emr")

`shoal_local_aws.account.local_aws` starts such an emulator in a `with` block, without pytest, and can also inject
faults.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import boto3

__all__ = ["shoal_aws"]


@pytest.fixture(scope="module")
def shoal_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator["boto3.Session"]:
    """boto3 session of an emulated AWS account. Each test file gets its own account."""
    import boto3  # import here, because pytest loads this module for every project that has the package installed

    from shoal_local_aws.account import local_aws

    with local_aws(tmp_path_factory.mktemp("aws")):
        yield boto3.Session()
