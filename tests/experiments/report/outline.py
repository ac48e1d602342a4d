"""Outline of a report's page: the headings and table rows that tests compare."""

from html.parser import HTMLParser
from pathlib import Path

from experiments.records import read_runs
from experiments.report.page import make_page
from experiments.table import group_runs, make_rows, warnings

_WHOLE, _BEGIN = 22, 3


class Outline(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.rows: list[list[str]] = []
        self._parts: list[str | list[list[str]]] = []
        self._in: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")
            self._parts.append("")
        if tag == "table":
            self._parts.append([])
        if tag == "tr":
            self.rows.append([])
            table = self._parts[-1]
            assert isinstance(table, list)
            table.append(self.rows[-1])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self._in = self._in if tag == "span" else tag

    def handle_endtag(self, tag: str) -> None:
        self._in = self._in if tag == "span" else None

    def handle_data(self, data: str) -> None:
        if self._in in ("h1", "h2", "h3"):
            self.headings[-1] += data
            self._parts[-1] = self.headings[-1]
        if self._in in ("td", "th"):
            self.rows[-1][-1] += data.strip()

    def text(self) -> str:
        """Return the headings, each with the rows of its tables: of a long table the first rows and the last."""
        lines = []
        for part in self._parts:
            if isinstance(part, str):
                lines.append(f"# {part}")
                continue
            rows = [" | ".join(row) for row in part]
            lines += rows if len(rows) <= _WHOLE else [*rows[:_BEGIN], f"({len(rows)} rows)", rows[-1]]
        return "".join(f"{line.rstrip()}\n" for line in lines)


def html_of(*folders: Path, baseline: Path | None = None) -> str:
    runs, _ = read_runs(folders)
    groups = group_runs(runs)
    return make_page(groups, make_rows(groups, baseline), warnings(runs), now=0.0)


def page_of(*folders: Path) -> Outline:
    return Outline(html_of(*folders))
