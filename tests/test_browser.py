"""The browser of the tests sees what is wrong with a page, and nothing that is not."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.browser import browser
from tests.browser.browser import Focus, Message, Seen, View, look

CLEAN = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>A clean page</title>
<link rel="icon" href="data:,">
<style>
  :root { color-scheme: light dark; background: #fff }
  #tip, #box { display: none }
  .mark:hover ~ #tip, button:hover ~ #box { display: block }
  @media (prefers-color-scheme: dark) { :root { background: #111 } }
  @media print { a { display: none } }
</style>
</head>
<body>
<main>
<h1>A clean page</h1>
<p><a href="#plot">To the plot</a> <button>More</button> <span id="box"><b>12</b><br><i>rows</i></span></p>
<svg id="plot" role="img" aria-label="Two labels" width="200" height="120">
  <rect class="mark" width="20" height="20"/><rect class="mark" x="40" width="20" height="20"/>
  <text x="0" y="60" font-size="12">one label</text><text x="80" y="60" font-size="12">another</text>
  <text transform="translate(10 110) rotate(-45)" font-size="12">leans</text>
  <text transform="translate(30 110) rotate(-45)" font-size="12">leans too</text>
  <text id="tip" x="0" y="90" font-size="12">12 rows</text>
</svg>
</main>
<script>
  document.body.dataset.scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.body.dataset.medium = matchMedia("print").matches ? "paper" : "screen";
</script>
</body>
</html>
"""

SHOWN = ["[data-scheme=dark]", "[data-medium=paper]"]

WRONG = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>A page with faults</title></head>
<body>
<main>
<h1>A page with faults</h1>
<img src="https://example.org/pixel.png" alt="">
<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">
<svg role="img" aria-label="Two labels" width="200" height="60">
  <text x="0" y="20" font-size="12">one label</text><text x="10" y="22" font-size="12">on another</text>
  <text x="0" y="50" font-size="12" visibility="hidden">hidden</text><text x="0" y="50" font-size="12">seen</text>
  <text x="180" y="50" font-size="12">it goes on</text>
</svg>
<div style="width: 3000px">wide</div>
</main>
<script>
  console.error("it is broken");
  new WebSocket("ws://192.0.2.1/socket");
  nobody.knows();
</script>
</body>
</html>
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def seen(folder: Path) -> Mapping[str, Seen]:
    """Several views in one launch, by name."""
    clean, wrong = folder / "a clean #page.html", folder / "wrong.html"
    clean.write_text(CLEAN)
    wrong.write_text(WRONG)
    views = {
        "clean": View(
            page=clean, count=[".mark", *SHOWN], hover=[".mark", "h1", "button"], tabs=3, screenshot=folder / "seen.png"
        ),
        "wrong": View(page=wrong),
        "dark": View(page=clean, width=360, scheme="dark", count=SHOWN),
        "printed": View(page=clean, printed=True, count=SHOWN, tabs=1),
    }
    return dict(zip(views, look(list(views.values())), strict=True))


@pytest.mark.parametrize("view", ["clean", "dark", "printed"])
def test_nothing_is_said_of_a_clean_page(seen: Mapping[str, Seen], view: str) -> None:
    shown = seen[view]
    assert [*shown.console, *shown.errors, *shown.refused, *shown.violations] == []
    assert list(shown.overlapping) == []
    assert list(shown.cut) == []
    assert not shown.sideways


def test_what_a_page_writes_to_the_console_is_told(seen: Mapping[str, Seen]) -> None:
    assert Message("error", "it is broken") in seen["wrong"].console


def test_an_exception_that_nobody_catches_is_told(seen: Mapping[str, Seen]) -> None:
    assert seen["wrong"].errors == ["nobody is not defined"]


def test_what_a_page_asks_of_a_network_is_refused_and_told(seen: Mapping[str, Seen]) -> None:
    assert set(seen["wrong"].refused) == {"https://example.org/pixel.png", "ws://192.0.2.1/socket"}


def test_what_axe_finds_is_told(seen: Mapping[str, Seen]) -> None:
    (fault,) = seen["wrong"].violations
    assert (fault.id, fault.impact, list(fault.targets)) == ("image-alt", "critical", ["img:nth-child(3)"])


def test_what_axe_cannot_tell_is_told(seen: Mapping[str, Seen]) -> None:
    (question,) = seen["clean"].undecided
    assert question.id == "color-contrast"
    assert [each for each in question.targets if not each.startswith("text")] == []


def test_texts_of_a_plot_that_lie_over_each_other_are_told(seen: Mapping[str, Seen]) -> None:
    assert seen["wrong"].overlapping == [("one label", "on another")]


def test_a_text_that_its_plot_cuts_off_is_told(seen: Mapping[str, Seen]) -> None:
    assert seen["wrong"].cut == ["it goes on"]


def test_a_page_wider_than_its_window_is_told(seen: Mapping[str, Seen]) -> None:
    assert seen["wrong"].sideways


def test_elements_are_counted_in_either_scheme_and_on_paper(seen: Mapping[str, Seen]) -> None:
    assert seen["clean"].counts == {".mark": 2, "[data-scheme=dark]": 0, "[data-medium=paper]": 0}
    assert seen["dark"].counts == {"[data-scheme=dark]": 1, "[data-medium=paper]": 0}
    assert seen["printed"].counts == {"[data-scheme=dark]": 0, "[data-medium=paper]": 1}


def test_what_appears_below_the_mouse_is_told(seen: Mapping[str, Seen]) -> None:
    assert seen["clean"].appeared == [["12 rows"], [], ["12\nrows"]]


def test_what_tab_leads_to_is_told_as_a_screen_reader_says_it(seen: Mapping[str, Seen]) -> None:
    assert seen["clean"].focused[:2] == [Focus("link", "To the plot"), Focus("button", "More")]
    assert seen["printed"].focused == [Focus("button", "More")]


def test_a_page_is_seen_in_a_time_of_its_own(seen: Mapping[str, Seen]) -> None:
    for shown in seen.values():
        assert shown.loaded_ms > 0
        assert shown.painted_ms is not None


def test_a_screenshot_shows_the_page(seen: Mapping[str, Seen], folder: Path) -> None:
    assert (folder / "seen.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_that_is_not_there_is_an_error_that_names_it(folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"nowhere\.html: net::ERR_FILE_NOT_FOUND"):
        look([View(page=folder / "nowhere.html")])


def test_a_browser_that_is_not_installed_is_an_error_that_says_what_to_run(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(browser, "READY", tmp_path / ".ready")
    with pytest.raises(RuntimeError, match="run `make test`"):
        look([])
