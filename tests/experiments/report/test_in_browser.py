"""The page in a browser: on a wide screen and a phone, light, dark and printed, with mouse, keyboard and axe."""

import pytest

from tests.browser.browser import View, look
from tests.experiments.report import examples
from tests.experiments.report.outline import html_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Page with every kind of plot."""
    folder = tmp_path_factory.mktemp("runs")
    examples.launched(folder / "one", dollars=2.0, seconds=900, ranks=1)
    examples.launched(folder / "two", dollars=3.0, seconds=500)
    examples.launched(
        folder / "mixed, and with a long name that no plot has the place for", dollars=3.5, rates=[2e3, 1e3]
    )
    examples.training(folder / "\u6a21\u578b\u30c7\u30fc\u30bf with wide letters, and 12 ranks", ranks=12)
    examples.experiment(folder / "experiment")
    path = folder / "report.html"
    path.write_text(html_of(folder))
    return path


@pytest.fixture(scope="module")
def seen(page):
    views = {
        "wide": View(
            page=page, width=1200, count=["figure", "figure svg", "figure svg:not(:has(path > title))"], tabs=12
        ),
        "dark": View(page=page, scheme="dark"),
        "half": View(page=page, width=800),
        "narrow": View(page=page, width=375, height=700),
        "printed": View(page=page, width=800, printed=True),
    }
    return dict(zip(views, look(list(views.values())), strict=True))


FAULTS = ("console", "errors", "refused", "violations", "overlapping", "cut", "sideways")


@pytest.mark.parametrize("kind", FAULTS)
def test_the_page_makes_no_requests_and_has_no_errors_overlaps_or_cuts(seen, kind) -> None:
    assert {name: getattr(each, kind) for name, each in seen.items() if getattr(each, kind)} == {}


def test_each_plot_is_drawn_and_has_marks(seen) -> None:
    counts = seen["wide"].counts
    assert counts["figure"] == counts["figure svg"] > 5
    assert counts["figure svg:not(:has(path > title))"] == 0


def test_a_wide_page_has_no_overflowing_table_and_the_keyboard_reaches_links_tables_and_numbers(seen) -> None:
    assert seen["wide"].scrolling == []
    assert {each.role for each in seen["wide"].focused} >= {"link", "group"}


def test_the_page_is_small(page) -> None:
    assert page.stat().st_size < 500_000


def test_the_page_of_many_runs_is_small(tmp_path) -> None:
    for number in range(40):
        rates = [1000.0 - 50 * rank for rank in range(1 + number % 8)]
        examples.launched(tmp_path / f"run-{number}", dollars=2.0 + number, rates=rates, hidden=16 * (number // 8))
    assert len(html_of(tmp_path).encode()) < 500_000
