"""Formats sizes, durations, shares, dollars and times as text for people."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from common.display import plural, size

if TYPE_CHECKING:
    from shoal.aws.guard import GuardReport
    from shoal.deployments.deletion import Deletion
    from shoal.deployments.kept import KeptBucket


def duration(seconds: float) -> str:
    """Return a number of seconds as rounded text, such as `12 minutes`."""
    if seconds < 0.5:
        return "less than a second"
    if seconds < 90:
        return plural(round(seconds), "second")
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def percent(share: float | None) -> str:
    """Return a share as a percentage, or `-` for None."""
    return "-" if share is None else f"{share:.1%}"


def dollars(amount: float | None, per: str = "") -> str:
    """Return an amount of dollars with `per` appended, such as `$1.50 per hour`, or `unknown` for None."""
    return "unknown" if amount is None else f"${amount:,.2f}{per}"


def utc_time(moment: datetime | None) -> str:
    """Return a UTC time as text, such as `2026-01-02 03:04 UTC`, or `-` for None."""
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def spent(guard: "GuardReport") -> str:
    """Return the cost that a deployment's guard counted, with the budget and the time of the count."""
    if guard.spent is None:
        return "not counted yet"
    budget = f" of {dollars(guard.budget)}" if guard.budget else ""
    unpriced = f", without {guard.unpriced} (price unknown)" if guard.unpriced else ""
    return f"{dollars(guard.spent)}{budget} as of {utc_time(guard.as_of)}{unpriced}"


def deletion_text(deletion: "Deletion") -> str:
    """Return a sentence that says who deletes a deployment, when, and why."""
    at, why = utc_time(deletion.at), f", because {deletion.reason}" if deletion.reason else ""
    remedy = f"; {deletion.remedy[:1].lower()}{deletion.remedy[1:].rstrip('.')}" if deletion.remedy else ""
    if deletion.state == "announced":
        return f"its guard will delete it at about {at}{why}{remedy}"
    if deletion.state == "started":
        return f"{'its guard' if deletion.by_guard else 'CloudFormation'} started to delete it at {at}{why}"
    return f"{'its guard deleted it' if deletion.by_guard else 'it was deleted'} at {at}{why}"


def deletion_rows(deletion: "Deletion | None") -> list[tuple[str, str]]:
    """Return the first rows about a deployment: its deletion, if there is one."""
    return [("deletion", deletion_text(deletion))] if deletion else []


def kept_text(kept: "KeptBucket") -> str:
    """Return a retained bucket's address, size, monthly price, and the reason why it is kept."""
    content = "of unknown size and price"
    if kept.objects is not None and kept.bytes is not None:
        content = f"{plural(kept.objects, 'object')}, {size(kept.bytes)}, {_monthly(kept.monthly)}"
    return f"s3://{kept.bucket}, {content} ({kept.why})"


def _monthly(amount: float | None) -> str:
    if amount is None:
        return "at an unknown price"
    return "less than $0.01 per month" if 0 < amount < 0.01 else dollars(amount, " per month")


def kept_content(
    kept: "Sequence[KeptBucket]", notes: Sequence[str]
) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Return a deployment's retained buckets as JSON content and as rows of text. Each note becomes a row, too."""
    rows = [*(("kept", kept_text(each)) for each in kept), *(("problem", note) for note in notes)]
    return [vars(each) for each in kept], rows
