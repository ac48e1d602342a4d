"""After `pip install .` in an empty environment, Shoal's commands run in another folder."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from shoal.demo.reviews import write_reviews
from tests.installed import install, plain
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of an environment with only Shoal and its dependencies."""
    folder = tmp_path_factory.mktemp("install")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():  # pip would build in the repository
        if (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "source" / name)
    lines = (line.partition("#")[0].strip() for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines())
    return install(folder / "source", folder / "environment", filter(None, lines))


@pytest.fixture
def shoal(installed: Path, tmp_path: Path):
    """Return a runner of the installed command in an empty folder, with only its environment and the system on PATH."""

    def run(*arguments: str, status: int = 0) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [installed / "shoal", *arguments],
            cwd=tmp_path,
            env={**plain(), "PATH": f"{installed}:/usr/bin:/bin", "AWS_EC2_METADATA_DISABLED": "true"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done

    return run


@pytest.mark.slow
def test_a_plan_a_dataset_a_model_and_a_prediction(shoal, tmp_path: Path) -> None:
    assert json.loads(shoal("plan", "starter", "--offline", "--json").stdout)["plans"][0]["topology"] == "starter"
    write_reviews(tmp_path / "reviews.json", texts=1_500)
    shoal("preprocess", "--local", "--input", "reviews.json", "--output", "data")
    shoal("train", "--local", "--nodes", "2", "--data", "data/dataset.h5", "--output", "model", "--model", "linear")
    (tmp_path / "text.txt").write_text("It broke.\n")
    assert shoal("predict", "--model", "model", "text.txt").stdout.endswith("It broke.\n")


@pytest.mark.soak
def test_commands_that_need_node_report_its_absence(shoal) -> None:
    done = shoal("embedded", "--", "true", status=1)
    assert "the command `cdk` is not installed" in done.stderr
    assert "install Node.js" in done.stderr
