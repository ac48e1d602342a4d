"""Reviews, and the dataset that `shoal preprocess` makes of them, for all tests of a module."""

from pathlib import Path

import pytest

from bootstrap.demo.reviews import write_reviews
from tests.bootstrap.cli.command import shoal


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reviews") / "reviews.json"
    write_reviews(path, texts=3_000)
    return path


@pytest.fixture(scope="module")
def dataset(reviews: Path) -> Path:
    folder = reviews.parent / "data"
    assert shoal("preprocess", "--local", "--input", reviews, "--output", folder).returncode == 0
    return folder / "dataset.h5"
