"""Tests of the message about the resources of a failed deployment."""

import pytest
from shoal_guard.sweep.sweeping import LEFT, UNVERIFIED, FoundResource

from bootstrap.aws.account import Account
from bootstrap.lifecycle import failure
from bootstrap.progress import Bars
from bootstrap.removal import teardown
from bootstrap.removal.teardown import DestroyResult


@pytest.mark.parametrize(
    ("stack", "outcomes", "sentence"),
    [
        ("deleted", [], "Shoal deleted all created resources; correct the cause"),
        ("deleted", [UNVERIFIED], "Shoal deleted the created resources, but could not check all of them; to check:"),
        ("deleted", [LEFT], "Shoal could not delete all created resources; to delete the rest: shoal destroy mine"),
        ("DELETE_FAILED: x", [], "Shoal could not delete all created resources; to delete the rest: shoal destroy"),
    ],
)
def test_only_deleted_resources_are_reported_as_deleted(
    monkeypatch: pytest.MonkeyPatch, stack: str, outcomes: list[str], sentence: str
) -> None:
    things = [FoundResource(kind="instance", identifier="i-1", billed=True, outcome=each) for each in outcomes]
    monkeypatch.setattr(failure, "first_boot", lambda *_, **__: [])
    monkeypatch.setattr(teardown, "destroy", lambda *_, **__: DestroyResult(stack=stack, things=things))
    failed = {"StackName": "Shoal-mine", "StackStatus": "CREATE_FAILED"}
    message = failure.clean_up("mine", Account(), failed, bars=Bars(), say=lambda _: None)
    assert message.startswith(sentence)
