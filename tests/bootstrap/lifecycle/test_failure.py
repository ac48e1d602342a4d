"""What is reported to be left of a deployment that failed."""

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
        ("deleted", [], "What was created has been deleted; correct the cause"),
        ("deleted", [UNVERIFIED], "What was created has been deleted, but not all of it was checked; check it by:"),
        ("deleted", [LEFT], "Not all of what was created could be deleted; delete the rest by: shoal destroy mine"),
        ("DELETE_FAILED: x", [], "Not all of what was created could be deleted; delete the rest by: shoal destroy"),
    ],
)
def test_only_what_is_gone_is_called_deleted(
    monkeypatch: pytest.MonkeyPatch, stack: str, outcomes: list[str], sentence: str
) -> None:
    things = [FoundResource(kind="instance", identifier="i-1", billed=True, outcome=each) for each in outcomes]
    monkeypatch.setattr(failure, "first_boot", lambda *_, **__: [])
    monkeypatch.setattr(teardown, "destroy", lambda *_, **__: DestroyResult(stack=stack, things=things))
    failed = {"StackName": "Shoal-mine", "StackStatus": "CREATE_FAILED"}
    told = failure.clean_up("mine", Account(), failed, bars=Bars(), say=lambda _: None)
    assert told.startswith(sentence)
