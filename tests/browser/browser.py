"""Pages as a headless Chromium shows them: what they write to its console, ask of networks, and draw.

Setup for tests brings the browser by npm (`package.json` beside this file), for x86-64, with fonts of its own
(`fonts.conf`), so that a page looks the same on every machine. A launch takes a second: ask for several views at once.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from tests.waiting import PATIENCE

FOLDER = Path(__file__).parent
READY = FOLDER / "node_modules" / ".ready"


@dataclass(frozen=True, kw_only=True)
class View:
    """A page, and how to look at it."""

    page: Path
    width: int = 1280
    """Of the window, in CSS pixels, as `height`."""
    height: int = 800
    scheme: Literal["light", "dark"] = "light"
    printed: bool = False
    """As on paper, by the page's rules for print."""
    count: Sequence[str] = ()
    """CSS selectors."""
    hover: Sequence[str] = ()
    """CSS selectors; the mouse goes to the first element that each finds, one after the other."""
    tabs: int = 0
    """How often Tab is pressed, after all hovering."""
    screenshot: Path | None = None
    """The whole page, at last, as a PNG."""


@dataclass(frozen=True)
class Message:
    """A line of the console; its kind is `log`, `warn`, `error` or another."""

    kind: str
    text: str


@dataclass(frozen=True)
class Fault:
    """A rule of axe that elements break: `targets` are CSS selectors, `help` says what is asked for."""

    id: str
    impact: str | None
    help: str
    targets: Sequence[str]


@dataclass(frozen=True)
class Focus:
    """What has the focus, as a screen reader says it."""

    role: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one view showed."""

    console: Sequence[Message]
    errors: Sequence[str]
    """Exceptions that no script caught."""
    refused: Sequence[str]
    """Addresses, other than those of files and data, that the page asked for. It got none of them."""
    violations: Sequence[Fault]
    undecided: Sequence[Fault]
    """Rules of axe of which it cannot tell: a person has to look."""
    counts: Mapping[str, int]
    """Elements by selector of the view's `count`."""
    sideways: bool
    """The page is wider than its window."""
    overlapping: Sequence[tuple[str, str]]
    """Pairs of texts of one SVG that lie over each other."""
    cut: Sequence[str]
    """Texts of which a part lies outside of their SVG, where it cannot be seen."""
    scrolling: Sequence[str]
    """Tables, by the names of their frames, of which a reader sees the rest only by scrolling sideways."""
    appeared: Sequence[Sequence[str]]
    """For each selector of `hover`: the texts of the elements that were to be seen only then."""
    focused: Sequence[Focus]
    """For each time that Tab was pressed."""
    loaded_ms: float
    """Milliseconds from the start of the navigation to the end of the load event."""
    painted_ms: float | None
    """Likewise to the first paint; None where nothing was painted."""


def look(views: Sequence[View]) -> list[Seen]:
    """What each of the views shows, in one launch of the browser.

    Raises RuntimeError with a sentence where it is not installed, or cannot show a page or find an element.
    """
    if not READY.exists():
        raise RuntimeError("the browser that tests look at pages with is not installed: run `make test`, which does it")
    asked = [{**asdict(view), "page": str(view.page.absolute())} for view in views]
    done = subprocess.run(
        [Path(sys.executable).parent / "node", FOLDER / "look.mjs"],
        input=json.dumps(asked, default=str),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [_seen(each) for each in json.loads(done.stdout)]


def _seen(told: Mapping[str, Any]) -> Seen:
    return Seen(
        **{
            **told,
            "console": [Message(**each) for each in told["console"]],
            "violations": [Fault(**each) for each in told["violations"]],
            "undecided": [Fault(**each) for each in told["undecided"]],
            "overlapping": [(one, other) for one, other in told["overlapping"]],
            "focused": [Focus(**each) for each in told["focused"]],
        }
    )
