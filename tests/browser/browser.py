"""Renders pages in a headless Chromium: console, network requests and drawing.

`make setup` installs the browser from npm (`package.json` in this folder), for x86-64, with its own fonts
(`fonts.conf`), so that a page looks the same on every machine. A launch takes a second: request several views at once.
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
    """A page, and the options to render it."""

    page: Path
    width: int = 1280
    """Width of the window in CSS pixels, like `height`."""
    height: int = 800
    scheme: Literal["light", "dark"] = "light"
    printed: bool = False
    """Whether to use the page's print rules."""
    count: Sequence[str] = ()
    """CSS selectors of elements to count."""
    hover: Sequence[str] = ()
    """CSS selectors. The mouse moves to the first element of each, one after the other."""
    tabs: int = 0
    """Number of presses of Tab, after all hovering."""
    screenshot: Path | None = None
    """Path of a PNG of the whole page, taken at the end."""


@dataclass(frozen=True)
class Message:
    """Line of the console. The kind is `log`, `warn`, `error` or another."""

    kind: str
    text: str


@dataclass(frozen=True)
class Fault:
    """Rule of axe that elements violate. `targets` are CSS selectors; `help` is the rule's advice."""

    id: str
    impact: str | None
    help: str
    targets: Sequence[str]


@dataclass(frozen=True)
class Focus:
    """Focused element, as a screen reader announces it."""

    role: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Results of one view."""

    console: Sequence[Message]
    errors: Sequence[str]
    """Exceptions that no script caught."""
    refused: Sequence[str]
    """Requested addresses, except files and data. The browser refused all of them."""
    violations: Sequence[Fault]
    undecided: Sequence[Fault]
    """Rules of axe without a decision: a person has to check."""
    counts: Mapping[str, int]
    """Number of elements for each selector in the view's `count`."""
    sideways: bool
    """Whether the page is wider than its window."""
    overlapping: Sequence[tuple[str, str]]
    """Pairs of overlapping texts in one SVG."""
    cut: Sequence[str]
    """Texts that lie partly outside their SVG and are therefore invisible."""
    scrolling: Sequence[str]
    """Tables that need sideways scrolling, by the names of their frames."""
    appeared: Sequence[Sequence[str]]
    """For each selector in `hover`, the texts of elements that were visible only then."""
    focused: Sequence[Focus]
    """Focus after each press of Tab."""
    loaded_ms: float
    """Milliseconds from the start of the navigation to the end of the load event."""
    painted_ms: float | None
    """Milliseconds to the first paint, or None if nothing was painted."""


def look(views: Sequence[View]) -> list[Seen]:
    """Return the results of the views, in one launch of the browser.

    Raises RuntimeError if the browser is not installed, or if it cannot show a page or find an element.
    """
    if not READY.exists():
        raise RuntimeError("the browser for tests of pages is not installed; run `make test`, which installs it")
    requests = [{**asdict(view), "page": str(view.page.absolute())} for view in views]
    done = subprocess.run(
        [Path(sys.executable).parent / "node", FOLDER / "look.mjs"],
        input=json.dumps(requests, default=str),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return [_seen(each) for each in json.loads(done.stdout)]


def _seen(view: Mapping[str, Any]) -> Seen:
    return Seen(
        **{
            **view,
            "console": [Message(**each) for each in view["console"]],
            "violations": [Fault(**each) for each in view["violations"]],
            "undecided": [Fault(**each) for each in view["undecided"]],
            "overlapping": [(one, other) for one, other in view["overlapping"]],
            "focused": [Focus(**each) for each in view["focused"]],
        }
    )
