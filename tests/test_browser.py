"""The browser of the tests reports the faults of a page, and only those."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.browser import browser
from tests.browser.browser import FOLDER, Focus, Message, Seen, View, look

CLEAN, WRONG = FOLDER / "clean #page.html", FOLDER / "wrong.html"
SHOWN = ["[data-scheme=dark]", "[data-medium=paper]"]
QUIET: dict[str, Any] = {
    **{name: [] for name in ("console", "errors", "refused", "violations", "overlapping", "cut")},
    "sideways": False,
}
SEEN: dict[str, dict[str, Any]] = {
    "clean": {
        **QUIET,
        "counts": {".mark": 2, "[data-scheme=dark]": 0, "[data-medium=paper]": 0},
        "appeared": [["12 rows"], [], ["12\nrows"]],
    },
    "dark": {**QUIET, "counts": {"[data-scheme=dark]": 1, "[data-medium=paper]": 0}},
    "printed": {
        **QUIET,
        "counts": {"[data-scheme=dark]": 0, "[data-medium=paper]": 1},
        "focused": [Focus("button", "More")],
    },
    "wrong": {
        "errors": ["nobody is not defined"],
        "overlapping": [("one label", "on another")],
        "cut": ["it continues"],
        "sideways": True,
    },
}


@pytest.fixture(scope="module")
def screenshot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages") / "seen.png"


@pytest.fixture(scope="module")
def seen(screenshot: Path) -> Mapping[str, Seen]:
    """Return several views from one launch, by name."""
    views = {
        "clean": View(
            page=CLEAN, count=[".mark", *SHOWN], hover=[".mark", "h1", "button"], tabs=3, screenshot=screenshot
        ),
        "wrong": View(page=WRONG),
        "dark": View(page=CLEAN, width=360, scheme="dark", count=SHOWN),
        "printed": View(page=CLEAN, printed=True, count=SHOWN, tabs=1),
    }
    return dict(zip(views, look(list(views.values())), strict=True))


@pytest.mark.parametrize("view", SEEN)
def test_a_view_shows_the_content_of_its_page(seen: Mapping[str, Seen], view: str) -> None:
    shown = seen[view]
    assert {name: getattr(shown, name) for name in SEEN[view]} == SEEN[view]
    assert shown.loaded_ms > 0
    assert shown.painted_ms is not None


def test_messages_faults_and_requests_are_reported(seen: Mapping[str, Seen], screenshot: Path) -> None:
    wrong, clean = seen["wrong"], seen["clean"]
    assert Message("error", "it is broken") in wrong.console
    assert set(wrong.refused) == {"https://example.org/pixel.png", "ws://192.0.2.1/socket"}
    (fault,) = wrong.violations
    assert (fault.id, fault.impact, list(fault.targets)) == ("image-alt", "critical", ["img:nth-child(3)"])
    (question,) = clean.undecided
    assert question.id == "color-contrast"
    assert [each for each in question.targets if not each.startswith("text")] == []
    assert clean.focused[:2] == [Focus("link", "To the plot"), Focus("button", "More")]
    assert screenshot.read_bytes().startswith(b"\x89PNG")


def test_a_missing_browser_is_an_error_that_names_the_command(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(browser, "READY", tmp_path / ".ready")
    with pytest.raises(RuntimeError, match="run `make test`"):
        look([])
