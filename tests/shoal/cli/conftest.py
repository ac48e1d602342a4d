"""Fixtures: reviews, their dataset, and models with known predictions."""

from pathlib import Path

import pytest

from shoal.demo.reviews import write_reviews
from tests.shoal.cli.command import shoal_here


@pytest.fixture(scope="module")
def reviews(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("reviews") / "reviews.json"
    write_reviews(path, texts=3_000)
    return path


@pytest.fixture(scope="module")
def dataset(reviews) -> Path:
    folder = reviews.parent / "data"
    done = shoal_here("preprocess", "--local", "--input", reviews, "--output", folder)
    assert done.returncode == 0, done.stderr
    return folder / "dataset.h5"


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    """Folders of two trained models, by their placeholders in commands."""
    from tests.shoal.cli.known_model import save_both

    return save_both(tmp_path_factory)


@pytest.fixture(scope="module")
def model(models) -> Path:
    return models["known"]
