"""Fixture: the user's account, with clients that all calls of a test file share."""

import os

import boto3
import pytest

from shoal.aws import account as guard
from shoal.aws.account import Account


@pytest.fixture(scope="module")
def account(aws):
    """Account of the user. Accounts with equal settings share clients: to create one takes longer than most calls."""
    create, shared = guard.Account.client, {}

    def settings(region):
        return region, *sorted(item for item in os.environ.items() if item[0].startswith("AWS_"))

    def client(self, service, region=None):
        if self.session.get_credentials().method == "explicit":  # another user
            return create(self, service, region)
        return create(shared.setdefault(settings(self.region), self), service, region)

    def client_of_user(service, region_name=None):
        return Account().client(service, region_name if region_name != own.region else None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        patch.setattr(guard.Account, "client", client)
        patch.setattr(boto3, "client", client_of_user)
        own = Account()
        shared[settings(own.region)] = own
        yield own
