"""Fixtures: reviews, their dataset, models with known predictions, and a narrow terminal."""

from pathlib import Path

import pytest

from bootstrap.cli import output
from bootstrap.cli.learning import dataset as dataset_info
from bootstrap.demo.reviews import write_reviews
from tests.bootstrap.cli.command import shoal_here


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reviews") / "reviews.json"
    write_reviews(path, texts=3_000)
    return path


@pytest.fixture(scope="module")
def dataset(reviews: Path) -> Path:
    folder = reviews.parent / "data"
    done = shoal_here("preprocess", "--local", "--runner", "inline", "--input", reviews, "--output", folder)
    assert done.returncode == 0, done.stderr
    return folder / "dataset.h5"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of two trained models, by their placeholders in commands."""
    from tests.bootstrap.cli.known_model import save, save_topics

    folders = {name: tmp_path_factory.mktemp(name) for name in ("known", "topics")}
    save(folders["known"])
    save_topics(folders["topics"])
    return folders


@pytest.fixture(scope="module")
def model(models: dict[str, Path]) -> Path:
    return models["known"]


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make commands print for a terminal of 80 columns, although the output is captured."""
    monkeypatch.setenv("COLUMNS", "80")
    for module in (output, dataset_info):
        monkeypatch.setattr(module, "columns", lambda _: 80)
