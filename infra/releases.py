"""Knows which EMR 7 releases can run the jobs, and until when AWS supports each.

The data are from Amazon EMR's release guide: each release's "supported lifecycle" and "application versions". AWS
still starts releases whose support has ended.
"""

import datetime

FIRST = "emr-7.10.0"
"""The first release with S3A. EMRFS, before it, writes an object NAME_$folder$ beside each folder, also beside `work/`,
where a cluster may not write (release guide, "EMR File System (EMRFS)" and "Amazon EMR 7.10.0 - Hive release notes",
read on 2026-11-29). The nodes have Python 3.11 from 7.1 on."""

_ENDS = {
    "emr-7.10.0": datetime.date(2027, 8, 16),
    "emr-7.13.0": datetime.date(2028, 4, 22),
    "emr-7.14.0": datetime.date(2028, 9, 9),
}
"""The day of "End of support" in each page "Amazon EMR release 7.x.0", read on 2026-11-29. Each earlier release has its
own: 7.3 ended on 2026-10-16, and 7.4 on 2026-11-13."""


def newest() -> str:
    return max(_ENDS, key=_order)


def runs_jobs(release: str) -> bool:
    """Whether the jobs run on a release."""
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
