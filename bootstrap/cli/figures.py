"""Figures for a person: sizes, times, amounts of money, and histograms as bars of text.

Bars are drawn in ASCII alone, because a terminal or a log file may lack other characters.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bootstrap.cli.output import table
from common.display import plural
from trainer.output.run_files import MODEL

if TYPE_CHECKING:
    from bootstrap.lifecycle.guard import GuardReport
    from bootstrap.lifecycle.kept import KeptBucket

_BAR_LETTERS = 30
"""The width of all bars of a line together: with their figures they fit into 80 letters."""


def size(number: float) -> str:
    """Bytes with a unit, in powers of 1000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:,.0f} {unit}" if unit == "bytes" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def model_row(output: Path) -> tuple[str, str]:
    """A row of a summary on a run's model: its folder, and how large its files are."""
    folder = output / MODEL
    stored = sum(each.stat().st_size for each in folder.iterdir()) if folder.is_dir() else 0
    return "model", f"{folder}, {size(stored)}" if stored else str(folder)


_MOST_BYTES = 1e18


def read_size(text: str) -> float:
    """The bytes that a text such as 92.45GB names, in powers of 1000. Raises argparse.ArgumentTypeError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(|k|M|G|T)B?", text.strip(), re.IGNORECASE)
    size = float(found[1]) * 1000.0 ** " kmgt".index(found[2].lower() or " ") if found else 0.0
    if not 0 < size <= _MOST_BYTES:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a size up to 1,000,000TB, such as 500MB or 92.45GB")
    return size


def duration(seconds: float) -> str:
    """An estimated time, without more digits than an estimate has."""
    if seconds < 0.5:
        return "less than a second"
    if seconds < 90:
        return plural(round(seconds), "second")
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def dollars(amount: float | None, per: str = "") -> str:
    """An amount; a dash where it is not known."""
    return "-" if amount is None else f"${amount:,.2f}{per}"


def utc_time(moment: datetime | None) -> str:
    """A time in UTC; a dash where it is not known."""
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M} UTC"


def spent(guard: "GuardReport") -> str:
    """What a deployment has cost, as its guard has counted."""
    if guard.spent is None:
        return "nothing counted yet"
    budget = f" of {dollars(guard.budget)}" if guard.budget else ""
    besides = f", besides {guard.unpriced}, whose price is not known" if guard.unpriced else ""
    return f"{dollars(guard.spent)}{budget} as of {utc_time(guard.as_of)}{besides}"


def stays(kept: "KeptBucket") -> str:
    """What stays in a bucket, its price, and why."""
    content = "of unknown size and price"
    if kept.objects is not None and kept.bytes is not None:
        content = f"{plural(kept.objects, 'object')}, {size(kept.bytes)}, {_monthly(kept.monthly)}"
    return f"s3://{kept.bucket}, {content} ({kept.why})"


def _monthly(amount: float | None) -> str:
    if amount is None:
        return "at an unknown price"
    return "less than $0.01 a month" if 0 < amount < 0.01 else dollars(amount, " a month")


def kept_content(
    kept: "Sequence[KeptBucket]", notes: Sequence[str]
) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """What stays of a deployment, for a program, and as rows for a person, with a row for what cannot be told."""
    rows = [*(("stays", stays(each)) for each in kept), *(("problem", note) for note in notes)]
    return [vars(each) for each in kept], rows


def bar(share: float, letters: int) -> str:
    """A bar for a share of the largest one, which has `letters` letters; a share above 0 has at least one."""
    return "#" * (max(1, round(share * letters)) if share else 0)


def histogram(title: str, columns: Mapping[str, Mapping[str, int]], shown: int | None = None) -> str:
    """A table with a line for each entry, and for each column its number, share and bar.

    `columns` maps each column's name, which may be empty, to its counts. All columns have the same entries, of which
    the first `shown` have a line; None: all of them.
    """
    letters = _BAR_LETTERS // len(columns)
    lines = []
    for entry in list(next(iter(columns.values())))[:shown]:
        line = [f"  {entry}"]
        for counts in columns.values():
            number, total, most = counts[entry], sum(counts.values()), max(counts.values())
            share = f"{number / total if total else 0:.1%}"
            line += [f"{number:,}", share, bar(number / most if most else 0, letters)]
        lines.append(line)
    heads = [title, *(head for name in columns for head in (name, "", ""))]
    numbers = [3 * column + number for column in range(len(columns)) for number in (1, 2)]
    return table(lines, heads, right=numbers)
