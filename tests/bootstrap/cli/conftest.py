"""Fixtures: reviews, their dataset, models with known predictions, and `shoal predict`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bootstrap.cli.main import main
from bootstrap.demo.reviews import write_reviews
from tests.bootstrap.cli.command import shoal
from tests.bootstrap.cli.known_model import save, save_topics


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


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    save(folder)
    return folder


@pytest.fixture
def answers_of(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Function that runs `shoal predict --json` in a temporary folder and returns the answers and the counts."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        assert main(["predict", "--model", str(model), *arguments, "--json"]) == 0
        printed = capsys.readouterr()
        return [json.loads(line) for line in printed.out.splitlines()], json.loads(printed.err.splitlines()[-1])

    return run


@pytest.fixture
def predicted(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = main(["predict", "--model", str(model), *arguments])
        except SystemExit as end:
            status = int(str(end.code))
        return status, *capsys.readouterr()

    return run


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of two trained models, by their placeholders in commands."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("known", "topics")}
    save(folders["known"])
    save_topics(folders["topics"])
    return folders
