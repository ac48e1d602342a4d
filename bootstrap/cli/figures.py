"""Figures as a person looks at them: sizes, times, histograms as small bars of text.

Only ASCII is drawn: a terminal or a log file may lack other characters.
"""

from collections.abc import Mapping

from bootstrap.cli.output import table

_BAR_LETTERS = 30
"""Of all bars in a line, so that they fit into 80 letters with their figures."""


def size(number: float) -> str:
    """Bytes with a unit, in powers of 1000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:,.0f} {unit}" if unit == "bytes" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def duration(seconds: float) -> str:
    """A time that was estimated: no more of it than is known."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def bar(share: float, letters: int) -> str:
    """A share of the largest bar, which has so many letters; what is not nothing shows."""
    return "#" * (max(1, round(share * letters)) if share else 0)


def histogram(title: str, columns: Mapping[str, Mapping[str, int]]) -> str:
    """A table with a line for each entry, and for each column its number, share and bar; all columns have the same.

    `columns` maps each column's name, which may be empty, to its counts.
    """
    letters = _BAR_LETTERS // len(columns)
    lines = []
    for entry in next(iter(columns.values())):
        line = [f"  {entry}"]
        for counts in columns.values():
            number, total, most = counts[entry], sum(counts.values()), max(counts.values())
            share = f"{number / total if total else 0:.1%}"
            line += [f"{number:,}", share, bar(number / most if most else 0, letters)]
        lines.append(line)
    heads = [title, *(head for name in columns for head in (name, "", ""))]
    numbers = [3 * column + number for column in range(len(columns)) for number in (1, 2)]
    return table(lines, heads, right=numbers)
