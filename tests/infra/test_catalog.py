"""The catalogue is read whole, and answers a mistyped name with the nearest."""

import re
from pathlib import Path

import pytest

from infra import catalog
from infra.errors import TopologyError


def test_a_type_has_its_hardware_and_price() -> None:
    found = catalog.find("g5.xlarge")
    assert found.gpu is not None
    assert (found.gpu.name, found.gpu.count, found.gpu.capability) == ("A10G", 1, "8.6")
    assert found.price == 1.006
    assert found.retired is None


@pytest.mark.parametrize(("name", "nearest"), [("g5.xlrge", "g5.xlarge"), ("g4dnxlarge", "g4dn.xlarge")])
def test_an_unknown_type_names_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(TopologyError, match=f"'{name}' is not an instance type .*did you mean .*{nearest}"):
        catalog.find(name)


def test_a_name_like_no_other_names_them_all() -> None:
    with pytest.raises(TopologyError) as caught:
        catalog.find("zzz")
    assert all(name in str(caught.value) for name in catalog.catalog().types)


def test_the_sentence_about_an_unknown_type_names_a_file_that_is_there() -> None:
    with pytest.raises(TopologyError) as caught:
        catalog.find("zzz")
    (named,) = re.findall(r"\S+\.yaml", str(caught.value))
    assert (Path(catalog.__file__).parents[1] / named).is_file()


def test_a_retired_type_names_one_of_today_that_has_as_many_gpus() -> None:
    retired = [row for row in catalog.catalog().types.values() if row.retired]
    assert {row.name for row in retired} == {"g3.4xlarge", "p2.xlarge"}
    for row in retired:
        assert row.retired is not None
        assert row.gpu is not None
        successor = catalog.find(row.retired.successor)
        assert successor.retired is None
        assert successor.gpu is not None
        assert successor.gpu.count == row.gpu.count


def test_emr_adds_about_a_quarter_to_the_price() -> None:
    for row in catalog.catalog().types.values():
        if row.emr is not None:
            assert 0.2 < row.emr / row.price < 0.35
