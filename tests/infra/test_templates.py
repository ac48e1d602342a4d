"""The template of the demo, and what each field changes in it: `templates.yaml`, which `tests.infra.pages` writes."""

from typing import Any

import pytest

from tests.infra import pages
from tests.infra.templates import Templates

CASES = pages.cases()


@pytest.fixture(scope="module")
def whole(templates: Templates) -> dict[str, Any]:
    return pages.page_of(templates, {})


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_a_topology_makes_what_its_page_shows(
    case: dict[str, Any], templates: Templates, whole: dict[str, Any]
) -> None:
    assert pages.seen(templates, case, whole) == case["page"]
