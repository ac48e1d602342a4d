"""Tests of the progress that `shoal deploy` shows from a stack's events."""

from typing import Any

import pytest

from bootstrap.aws import stacks
from bootstrap.lifecycle.deploy import _StackView
from bootstrap.progress import Bars

STACK = "arn:aws:cloudformation:us-east-1:000000000000:stack/Shoal-demo/1"


class Shown(Bars):
    """Progress bars that record their calls."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Any] = []

    def stage(self, name: str, total: int, unit: str = "", *_: Any) -> None:
        self.all.append((name, total, unit))

    def say(self, **fields: str) -> None:
        self.all.append(fields)

    def at(self, done: int) -> None:
        self.all.append(done)


def event(number: int, resource: str, status: str) -> dict[str, str]:
    physical = STACK if resource == "Shoal-demo" else resource.lower()
    return {
        "EventId": str(number),
        "LogicalResourceId": resource,
        "ResourceStatus": status,
        "StackId": STACK,
        "PhysicalResourceId": physical,
    }


def test_the_bar_starts_with_the_first_resource_and_counts_complete_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = [event(0, "Old", "CREATE_COMPLETE"), event(1, "Shoal-demo", "UPDATE_IN_PROGRESS")]
    monkeypatch.setattr(stacks, "events", lambda *_: events[::-1])
    shown = Shown()
    view = _StackView(None, "Shoal-demo", {"0"}, shown)
    view.look(3)
    assert shown.all == []
    events += [event(2, "Role", "CREATE_COMPLETE"), event(3, "Bucket", "CREATE_IN_PROGRESS")]
    view.look(3)
    events += [event(4, "Bucket", "CREATE_COMPLETE")]
    view.look(3)
    assert shown.all == [("CloudFormation", 3, "resource"), {"now": "Bucket"}, 1, {"now": "Bucket"}, 2]
