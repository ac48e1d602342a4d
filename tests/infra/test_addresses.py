import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import addresses

PARTS = st.text("ab-.", min_size=1, max_size=3).filter(lambda part: part not in (".", ".."))
NAMES = st.lists(PARTS, max_size=3).map("/".join)
NAMED = st.builds(
    "s3://bucket{}{}".format, NAMES.map(lambda name: f"/{name}" if name else ""), st.sampled_from(["", "/"])
)
KEYS = st.text("ab-./*[", max_size=8)


def inside(named, key):
    """Return the same as `contains`, computed from the parts between slashes."""
    name = named.removeprefix("s3://bucket").removeprefix("/")
    if not name:
        return True
    above, found = name.removesuffix("/").split("/"), key.split("/")
    return key == name or (len(found) > len(above) and found[: len(above)] == above)


@given(NAMED, KEYS)
def test_an_input_contains_its_object_and_all_objects_below(named, key):
    assert addresses.contains(named, f"s3://bucket/{key}") is inside(named, key)


@given(NAMED, NAMES)
def test_an_input_contains_nothing_of_another_bucket(named, key):
    assert not addresses.contains(named, f"s3://bucket2/{key}")
    assert not addresses.contains(named, f"s3://bucke/{key}")


@pytest.mark.parametrize(
    ("address", "narrowest"),
    [
        ("s3://bucket/reviews/*.gz", "s3://bucket/reviews/"),
        ("s3://bucket/reviews/2024*/x", "s3://bucket/reviews/"),
        ("s3://bucket/*", "s3://bucket/"),
        ("s3://bucket/x", "s3://bucket/x"),
    ],
)
def test_the_narrowest_input_is_the_address_or_the_folder_of_a_pattern(address, narrowest):
    assert addresses.narrowest(address) == narrowest
