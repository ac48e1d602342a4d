"""Sizes, durations and costs as text."""

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest
from shoal_guard.deletion import AnnouncedDeletion

from common.display import size
from shoal.aws.deployment import Deployment
from shoal.aws.guard import GuardReport
from shoal.cli.figures import dollars, duration, kept_text, percent, spent
from shoal.cli.target import Target
from shoal.deployments import deletion
from shoal.deployments.kept import KeptBucket

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_estimated_figures_are_rounded():
    assert [size(each) for each in (0, 999, 1_500, 234_567, 92.45e9, 5e12)] == [
        *("0 bytes", "999 bytes", "1.5 kB", "235 kB", "92.5 GB", "5.0 TB")
    ]
    assert [duration(each) for each in (0.3, 1.2, 8.4, 600, 7_200)] == [
        *("less than a second", "1 second", "8 seconds", "10 minutes", "2.0 hours")
    ]


@pytest.mark.parametrize(
    ("counted", "shown"),
    [
        ({}, "not counted yet"),
        ({"spent": 0.0, "as_of": NOON}, "$0.00 as of 2026-01-02 12:00 UTC"),
        ({"spent": 1.5, "as_of": NOON, "budget": 20}, "$1.50 of $20.00 as of 2026-01-02 12:00 UTC"),
        (
            {"spent": 0.0, "as_of": NOON, "unpriced": "g5.xlarge"},
            "$0.00 as of 2026-01-02 12:00 UTC, without g5.xlarge (price unknown)",
        ),
    ],
)
def test_a_counted_cost_is_shown_even_if_it_is_zero(counted, shown):
    unused = {"created": NOON, "max_hours": 12, "added_hours": 0, "gpu": {}, "emr": {}, "standing": 0}
    assert spent(GuardReport(**{**unused, "budget": None, "spent": None, "as_of": None, **counted})) == shown


def test_zero_is_not_shown_as_unknown():
    assert [dollars(0), dollars(None), percent(0), percent(None)] == ["$0.00", "unknown", "0.0%", "-"]
    kept = [KeptBucket(bucket="b", objects=each, bytes=each, monthly=each, why="new") for each in (0, None)]
    assert [kept_text(each) for each in kept] == [
        "s3://b, 0 objects, 0 bytes, $0.00 per month (new)",
        "s3://b, of unknown size and price (new)",
    ]


def test_work_on_a_deployment_begins_with_a_warning_of_its_announced_deletion(monkeypatch, capsys):
    found = AnnouncedDeletion(at=NOON, reason="its budget of $0.50 is spent", remedy="To keep it, do this.")
    monkeypatch.setattr(deletion, "find_announcement", Mock(side_effect=[found, None]))
    deployment = Deployment(name="mine", topology="starter", session=Mock(), outputs={})
    monkeypatch.setattr("shoal.aws.deployment.find_deployment", lambda *_: deployment)
    for _ in range(2):
        assert Target("mine", "us-east-1", "train").deployment_with_warning() is deployment
    assert capsys.readouterr().err == (
        "warning: mine: its guard will delete it at about 2026-01-02 12:00 UTC, because its budget of $0.50 is spent; "
        "to keep it, do this\n"
    )
