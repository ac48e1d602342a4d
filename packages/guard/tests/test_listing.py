"""Ownership of load balancers, decided by tags that need a separate call."""

from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from shoal_guard.errors import OwnershipUnknownError
from shoal_guard.sweep.listing import owns_load_balancer


class FakeOwner:
    """Fake owner, account and client in one object. The load balancer has these tags."""

    def __init__(self, answer: Any) -> None:
        self.account, self._answer = self, answer

    def client(self, _: str) -> "FakeOwner":
        return self

    def describe_tags(self, **_: Any) -> dict[str, Any]:
        if isinstance(self._answer, Exception):
            raise self._answer
        return {"TagDescriptions": [{"Tags": self._answer}]}

    def of(self, tags: Any) -> bool:
        return bool(tags == ["ours"])


def is_owned(answer: Any) -> bool:
    return owns_load_balancer(cast(Any, FakeOwner(answer)), {"LoadBalancerArn": "x"})


def test_tags_decide_the_owner_and_unreadable_tags_leave_it_unknown():
    assert (is_owned(["ours"]), is_owned(["theirs"])) == (True, False)
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeTags")
    for error in (refused, EndpointConnectionError(endpoint_url="x")):
        with pytest.raises(OwnershipUnknownError, match=r"^its tags are unreadable"):
            is_owned(error)
