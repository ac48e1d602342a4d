from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from shoal_guard.errors import OwnershipUnknownError
from shoal_guard.sweep.listing import owns_load_balancer


def is_owned(answer):
    """Decide about a load balancer from this answer about its tags. The owner's tags are `ours`."""
    client = Mock(describe_tags=Mock(side_effect=[answer]))
    owner = Mock(account=Mock(client=lambda _: client), of=lambda tags: tags == ["ours"])
    return owns_load_balancer(owner, {"LoadBalancerArn": "x"})


def tags(name):
    return {"TagDescriptions": [{"Tags": [name]}]}


def test_tags_decide_the_owner_and_unreadable_tags_leave_it_unknown():
    assert (is_owned(tags("ours")), is_owned(tags("theirs"))) == (True, False)
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeTags")
    for error in (refused, EndpointConnectionError(endpoint_url="x")):
        with pytest.raises(OwnershipUnknownError, match=r"^its tags are unreadable"):
            is_owned(error)
