"""What is left of work on a cluster, by the markers of its steps."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bootstrap.preprocessing import work
from bootstrap.preprocessing.work import ClusterWork

NAMES = ("read", "choose", "encode")


@pytest.mark.parametrize(
    ("markers", "left"),
    [
        ({}, NAMES),
        ({"read": 1}, NAMES[1:]),
        ({"read": 1, "encode": 1}, NAMES[1:]),
        ({"read": 1, "choose": 25, "encode": 1}, NAMES[1:]),
        (dict.fromkeys(NAMES, 1), ()),
    ],
)
def test_work_goes_on_at_the_first_step_without_a_marker_of_the_last_day(
    markers: dict[str, int], left: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def marker(_: Any, place: Any) -> dict[str, datetime] | None:
        hours = markers.get(place.key)
        return None if hours is None else {"LastModified": datetime.now(UTC) - timedelta(hours=hours)}

    monkeypatch.setattr(work, "head_if_there", marker)
    steps = [SimpleNamespace(done_file=f"s3://data/{name}") for name in NAMES]
    plan = cast(Any, SimpleNamespace(steps=lambda: steps))
    found = ClusterWork(s3=cast(Any, None), run="x", plan=plan, beside={}).unfinished()
    assert tuple(each.done_file.rpartition("/")[2] for each in found) == left
