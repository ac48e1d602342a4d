"""Knows which EMR 7 releases have the Python that the jobs need, and until when AWS supports each.

The data are from Amazon EMR's release guide: each release's "supported lifecycle" and "application versions". AWS
still starts releases whose support has ended.
"""

import datetime

FIRST = "emr-7.1.0"
"""The first release with Python 3.11 on its nodes."""

_ENDS = {
    "emr-7.10.0": datetime.date(2027, 8, 31),
    "emr-7.13.0": datetime.date(2028, 4, 22),
    "emr-7.14.0": datetime.date(2028, 9, 9),
}
"""The day on which AWS's support ends; that of all releases up to 7.10 ends on the same day."""


def newest() -> str:
    return max(_ENDS, key=_order)


def has_python(release: str) -> bool:
    """Whether Python 3.11 is on the nodes of a release."""
    return _order(release) >= _order(FIRST)


def support_ends(release: str) -> datetime.date | None:
    """The day on which AWS's support of a release ends; None for a release that is newer than this list.

    The support of a release that is not listed ends no later than that of the next listed one.
    """
    later = [each for each in _ENDS if _order(each) >= _order(release)]
    return _ENDS[min(later, key=_order)] if later else None


def _order(release: str) -> tuple[int, ...]:
    """7.10.0 comes after 7.9.0."""
    return tuple(map(int, release.removeprefix("emr-").split(".")))
