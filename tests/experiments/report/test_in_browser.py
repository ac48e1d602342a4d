"""The page in a browser: on a wide screen and a phone, light, dark and printed, with mouse, keyboard and axe."""

import pytest

from experiments.report.writing import report
from tests.browser.browser import View, look
from tests.experiments import made_records as records
from tests.experiments.report import examples

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
    examples.dataset(folder / "data")
    examples.experiment(folder / "experiment")
    examples.preprocessings(folder / "preprocessing")
    path = folder / "report.html"
    path.write_text(report([folder], now=0.0).page)
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
    assert counts["figure"] == counts["figure svg"] > 15
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
    assert len(report([tmp_path], now=0.0).page.encode()) < 500_000


def test_each_bar_has_its_number_next_to_it_at_any_length(tmp_path) -> None:
    lines = [
        records.start(100),
        records.step(1, 101),
        {**records.step(20, 102), "rows_per_second": 640.0, "balanced": 0.99},
    ]
    runs = [
        records.write(tmp_path / "long", *lines),
        examples.launched(tmp_path / "cheap", dollars=0.0123, seconds=40),
        examples.launched(tmp_path / "dear", dollars=12345.6, seconds=400_000),
    ]
    for run in runs:
        run.with_suffix(".html").write_text(report([run], now=0.0).page)
    for seen in look([View(page=run.with_suffix(".html")) for run in runs]):
        assert (seen.overlapping, seen.cut) == ([], [])
