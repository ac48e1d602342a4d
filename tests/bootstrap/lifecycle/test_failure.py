"""Tests of the message about the resources of a failed deployment."""

import pytest
from shoal_guard.sweep.sweeping import LEFT, UNVERIFIED, FoundResource

from bootstrap.aws.account import Account
from bootstrap.lifecycle import failure
from bootstrap.progress import Bars
from bootstrap.removal import teardown
from bootstrap.removal.teardown import DestroyResult
from tests.messages import Messages


@pytest.mark.parametrize(
    ("stack", "outcomes"),
    [("deleted", []), ("deleted", [UNVERIFIED]), ("deleted", [LEFT]), ("DELETE_FAILED: x", [])],
    ids=["deleted", "unverified", "left", "failed"],
)
def test_only_deleted_resources_are_reported_as_deleted(
    monkeypatch: pytest.MonkeyPatch, messages: Messages, stack: str, outcomes: list[str]
) -> None:
    things = [FoundResource(kind="instance", identifier="i-1", billed=True, outcome=each) for each in outcomes]
    monkeypatch.setattr(failure, "first_boot", lambda *_, **__: [])
    monkeypatch.setattr(teardown, "destroy", lambda *_, **__: DestroyResult(stack=stack, things=things))
    failed = {"StackName": "Shoal-mine", "StackStatus": "CREATE_FAILED"}
    messages.check(failure.clean_up("mine", Account(), failed, bars=Bars(), say=lambda _: None))
