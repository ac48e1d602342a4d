from pathlib import Path

import pytest
import yaml

from tests.infra import pages
from tests.infra.invariants import needs

LASTING = yaml.safe_load(Path(__file__).with_name("lasting.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", LASTING)
def test_a_dependency_outlives_its_resource(name, templates):
    resources = templates.resources(pages.DEMO)
    (logical,) = (each for each in resources if pages.name_of(each) == name)
    assert {*LASTING[name]} <= {pages.name_of(each) for each in needs(resources, logical)}
