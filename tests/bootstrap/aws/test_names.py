"""Names of runs and datasets are told from any other text."""

import pytest

from bootstrap.aws.names import is_dataset, is_run

DIGEST = "0" * 32


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("starter.20260102T030405-0a1b", True),
        ("starter.20260102T030405-0a1", False),
        ("../starter.20260102T030405-0a1b", False),
        ("starter.20260102T030405-0a1b/..", False),
        ("starter", False),
    ],
)
def test_a_run_is_known_by_its_name(name: str, is_one: bool) -> None:
    assert is_run(name) is is_one


@pytest.mark.parametrize(
    ("key", "is_one"),
    [
        (f"datasets/{DIGEST}/dataset.h5", True),
        (f"datasets/{DIGEST}/other.h5", False),
        (f"datasets/../{DIGEST}/dataset.h5", False),
        (f"runs/{DIGEST}/dataset.h5", False),
    ],
)
def test_a_dataset_is_known_by_its_key(key: str, is_one: bool) -> None:
    assert is_dataset(key) is is_one
