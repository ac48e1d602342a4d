import shutil

import pytest
import yaml

from infra import catalog, parts
from infra.topology_error import TopologyError
from tests.infra.variants import SHIPPED

TYPES = catalog.catalog().types
CURRENT = [row for row in TYPES.values() if not row.retired]
RETIRED = [row for row in TYPES.values() if row.retired]


def gpu(name):
    return catalog.find(name).gpu


@pytest.mark.parametrize(
    ("name", "nearest"), [("g5.xlrge", "g5.xlarge"), ("g4dnxlarge", "g4dn.xlarge"), ("m7g.2xlarg", "m7g.2xlarge")]
)
def test_an_unknown_type_names_the_nearest(name, nearest, messages):
    with messages.raises(TopologyError) as refusal:
        catalog.find(name)
    assert nearest in str(refusal.value)


def test_a_retired_type_names_a_current_one_with_as_many_gpus_if_possible():
    most = max(row.gpu.count for row in CURRENT if row.gpu)
    for row in RETIRED:
        assert catalog.find(row.retired.successor).retired is None
        assert gpu(row.retired.successor).count >= min(gpu(row.name).count, most)
        assert row.image is None


def test_every_type_has_a_price_and_emr_types_have_an_emr_price():
    prices = catalog.prices("us-east-1")
    assert set(prices.instances) == set(TYPES)
    assert set(prices.emr) == {row.name for row in CURRENT if row.runs_emr}


@pytest.mark.parametrize("row", [row for row in CURRENT if row.gpu], ids=lambda row: row.name)
def test_every_current_gpu_type_has_an_image_with_a_torch_that_supports_it(row):
    assert row.image
    assert (7, 5) <= tuple(map(int, row.gpu.capability.split("."))) <= (12, 0)  # of each image in catalog.yaml


def test_a_type_without_an_image_gets_the_default_image():
    assert catalog.image_of("p2.xlarge") == catalog.image_of("g5.xlarge")


@pytest.mark.parametrize(
    ("region", "price", "item"),
    [
        ("us-east-1", "emr_hourly", "g5.xlarge"),
        ("us-east-1", "hourly", "g5.xlrge"),
        ("eu-north-1", "hourly", "m5.xlarge"),
        ("eu-north-1", "emr_hourly", "m5.xlarge"),
        ("eu-west-1", "volume_hourly", 150),
    ],
)
def test_a_missing_price_is_reported_with_region_date_and_command(region, price, item, messages):
    with messages.raises(TopologyError):
        getattr(catalog.prices(region), price)(item)


@pytest.mark.parametrize("region", sorted(path.stem for path in catalog.PRICES.glob("*.yaml")))
def test_each_list_prices_only_what_a_zone_of_its_region_offers(region):
    newest = catalog.prices(region)
    assert {name for name in newest.instances if not catalog.find(name).retired} <= set(newest.zones) <= set(TYPES)
    assert all(newest.hourly(name) > 0 for name in newest.instances)
    zones = {zone for offered in newest.zones.values() for zone in offered}
    assert len({zone.partition("-")[0] for zone in zones}) == 1


def test_tcp_uses_one_network_card_and_efa_all_cards_with_efa():
    found = {name: (row.network, row.efa and (row.efa.cards, row.efa.network)) for name, row in TYPES.items()}
    assert found["p4d.24xlarge"] == (100, (4, 400))
    assert found["p5.48xlarge"] == (100, (32, 3200))
    assert found["g5.xlarge"] == (2.5, None)
    for network, efa in found.values():
        assert efa is None or network <= efa[1]


@pytest.mark.parametrize(
    "text",
    [
        b"date: 2026-11-01\n",
        b"- 1\n",
        b"{",
        b"date: \xff",
        b"date: 2026-11-01\ninstances: {m5.xlarge: cheap}\n",
        b"date: 2026-11-01\nsource: s\ninstances: {m5.xlarge: true}\n",
        b"date: 2026-11-01\nsource: s\ninstances: {}\n---\ndate: new\nsource: s\ninstances: {}\n",
        b"date: 2026-11-01\nsource: 1\ninstances: {}\n",
        b"date: 2026-11-01\nsource: s\ninstances: {}\nzones: {m5.xlarge: use1-az1}\n",
    ],
)
def test_a_broken_list_is_named(tmp_path, text):
    shutil.copy(catalog.PRICES / "us-east-1.yaml", tmp_path)
    (tmp_path / "eu-west-1.yaml").write_bytes(text)
    with pytest.raises(TopologyError, match=r"eu-west-1\.yaml does not contain price lists"):
        catalog.prices("eu-west-1", folder=tmp_path)


def test_the_catalogue_describes_the_machine_images_that_are_used():
    folder = SHIPPED.parent / "tests" / "images"
    gpu, emr = (yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("gpu", "emr"))
    assert [gpu["image"]] == list(catalog.catalog().images.values())
    assert emr["image"] == parts.PreprocessingSpec.model_fields["release"].default
