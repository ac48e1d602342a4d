"""Pages without their plots."""

import pytest

from experiments.report import plots


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace each plot by an empty one: drawing takes most of the time of a page."""
    monkeypatch.setattr(plots.vl_convert, "vegalite_to_svg", lambda _: '<svg viewBox="0 0 1 1"></svg>')
