"""Tests of the progress that `shoal deploy` shows from a stack's events."""

from unittest.mock import Mock, call

import pytest

from bootstrap.aws import stacks
from bootstrap.lifecycle.deploy import _StackView

STACK = "arn:aws:cloudformation:us-east-1:000000000000:stack/Shoal-demo/1"


def event(number: int, resource: str, status: str) -> dict[str, str]:
    return {
        "EventId": str(number),
        "LogicalResourceId": resource,
        "ResourceStatus": status,
        "StackId": STACK,
        "PhysicalResourceId": STACK if resource == "Shoal-demo" else resource.lower(),
    }


def test_the_bar_starts_with_the_first_resource_and_counts_complete_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event(0, "Old", "CREATE_COMPLETE"), event(1, "Shoal-demo", "UPDATE_IN_PROGRESS")]
    monkeypatch.setattr(stacks, "events", lambda *_: events[::-1])
    bars = Mock()
    view = _StackView(None, "Shoal-demo", {"0"}, bars)
    view.look(3)
    assert bars.mock_calls == [call.tick()]
    events += [event(2, "Role", "CREATE_COMPLETE"), event(3, "Bucket", "CREATE_IN_PROGRESS")]
    view.look(3)
    events += [event(4, "Bucket", "CREATE_COMPLETE")]
    view.look(3)
    bucket = call.say(now="Bucket")
    shown = [each for each in bars.mock_calls if each != call.tick()]
    assert shown == [call.stage("CloudFormation", 3, unit="resource"), bucket, call.at(1), bucket, call.at(2)]
