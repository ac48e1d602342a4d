"""Tests of the demo's template and of the changes by each field, against `templates.yaml` (see `tests.infra.pages`)."""

import pytest

from tests.infra import pages

CASES = pages.cases()


@pytest.fixture(scope="module")
def whole(templates):
    return pages.page_of(templates, {})


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_a_topology_has_the_template_of_its_page(case, templates, whole):
    assert pages.seen(templates, case, whole) == case["page"]
