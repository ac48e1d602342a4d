"""An experiment with arms that start from language models, from its file to the report."""

import json
from pathlib import Path

import pytest

from bootstrap.cli.main import main
from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from experiments.report.writing import report
from tests.experiments.report.test_report import Outline
from tests.trainer.conftest import VOCABULARY, make_rows

CURVE = """\
about: Labels and text.
kind: training
repeats: 2
pretraining: {epochs: 1, embedding: 8, hidden: 8, layers: 1, global_batch: 4, bptt: 10, threads: 1}
arms:
  - {name: few, local: {ranks: 1}, settings: {model: fasttext, train_rows: 40, epochs: 1, buckets: 1000}}
  - {name: few after half, local: {ranks: 1}, pretraining: {train_share: 0.5}, settings: {train_rows: 40, epochs: 1}}
  - {name: all after half, local: {ranks: 1}, pretraining: {train_share: 0.5}, settings: {epochs: 1}}
"""


@pytest.fixture
def asked(tmp_path: Path) -> tuple[str, ...]:
    rows = make_rows(600, seed=1)
    settings = Settings(row_length=20, vocabulary_size=60)
    write_dataset(
        tmp_path / "dataset.h5", train=rows, test=make_rows(60, seed=2), vocabulary=VOCABULARY, settings=settings
    )
    (tmp_path / "curve.yaml").write_text(CURVE)
    return (
        *("experiment", "run", str(tmp_path / "curve.yaml"), "--local", "--data", str(tmp_path / "dataset.h5")),
        *("--output", str(tmp_path / "out")),
    )


def test_a_dry_run_shows_the_pretraining_once_and_first(
    asked: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*asked, "--dry-run", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(each["arm"], each["pretrains"]) for each in runs[:2]] == [("few after half", True), ("few", False)]
    assert sum(each["pretrains"] for each in runs) == 1
    assert len(runs) == 1 + 3 * 2
    assert main([*asked, "--dry-run", "--arms", "few"]) == 0
    assert "pretraining" not in capsys.readouterr().out


@pytest.mark.soak
def test_all_arms_start_from_one_pretraining_and_make_a_curve(
    asked: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*asked, "--json"]) == 0
    curve = json.loads(capsys.readouterr().out)["learning_curve"]
    assert [(each["arm"], each["labels"]) for each in curve] == [
        ("few", 40),
        ("few after half", 40),
        ("all after half", 570),
    ]
    assert [each["tokens"] > 0 for each in curve] == [False, True, True]
    assert curve[1]["pretraining_seconds"] == curve[2]["pretraining_seconds"] > 0
    assert all(0 <= each["least"] <= each["accuracy"] <= each["most"] <= 1 for each in curve)
    (learnt,) = (tmp_path / "out/.pretraining").iterdir()
    about = json.loads((tmp_path / "out/all-after-half/2/summary.json").read_text())
    assert about["stopped"] is False
    changed = (learnt / "summary.json").stat().st_mtime_ns
    assert main([*asked]) == 0  # everything has finished
    assert (learnt / "summary.json").stat().st_mtime_ns == changed
    text = capsys.readouterr().out
    for part in ("Accuracy by labels:", "pretrained on", "no pretraining", f"{curve[1]['tokens']:,} tokens"):
        assert part in text
    found = Outline(report([tmp_path / "out"], now=0.0).page)
    assert "Accuracy by labels" in found.headings
    assert any(row[:2] == ["no pretraining", "40"] for row in found.rows)
