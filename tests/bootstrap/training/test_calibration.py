"""Calibration: short runs, by which longer ones are predicted."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bootstrap.cli.main import main
from bootstrap.interrupt import Interrupt
from bootstrap.progress import Bars
from bootstrap.training import calibration
from bootstrap.training.places.this_machine import ThisMachine
from bootstrap.training.sources.dataset import PreparedDataset
from common.errors import ShoalError
from corpus.dataset import RowBlock, write_dataset
from corpus.dataset_settings import Settings
from experiments.forecast.rates import rates_of, read_rates
from experiments.forecast.training import predict_training
from experiments.records.runs import read_run
from tests.trainer.conftest import VOCABULARY, make_rows
from trainer.config import TrainConfig
from trainer.options.run_options import Slowdown


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_BATCHES", (64, 128))
    monkeypatch.setattr(calibration, "_SECONDS", 0.5)


@pytest.mark.soak
@pytest.mark.usefixtures("brief")
def test_the_slower_of_two_ranks_has_the_steeper_line(tmp_path: Path) -> None:
    config = TrainConfig(data=Path("none"), output=tmp_path, slow={1: Slowdown(12.0)}, threads=1, hidden=8)
    with Bars() as bars:
        folders = calibration.calibrate(config, ThisMachine(2), data=None, bars=bars)
    assert [folder.name for folder in folders] == ["batch-64", "batch-128"]
    launch = json.loads((folders[0] / "launch.json").read_text())
    rates = rates_of([read_run(folder) for folder in folders])
    fast, slow = rates.ranks
    assert slow.seconds(64) > 2 * fast.seconds(64)
    assert 0 < rates.around < launch["seconds"] * 2
    assert rates.evaluation > 0


@pytest.mark.soak
@pytest.mark.usefixtures("brief")
def test_shoal_calibrate_shows_what_a_step_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "dataset.h5"
    settings = Settings(row_length=20, vocabulary_size=60)
    rows = make_rows(3000, seed=1)
    write_dataset(data, train=rows, test=make_rows(300, seed=2), vocabulary=VOCABULARY, settings=settings)
    options = ("--data", str(data), "--output", str(tmp_path / "rates"), "--hidden", "8", "--threads", "1")
    assert main(["calibrate", "--local", *options]) == 0
    text = capsys.readouterr().out
    assert "us a row" in text
    assert "shoal plan" in text
    train = (
        "train",
        "--local",
        "--model",
        "lstm",
        "--data",
        str(data),
        "--hidden",
        "8",
        "--threads",
        "1",
        "--epochs",
        "2",
    )
    rates = ("--rates", str(tmp_path / "rates"))
    assert main([*train, "--output", str(tmp_path / "model"), *rates]) == 0
    assert "; it took " in capsys.readouterr().out
    launch = json.loads((tmp_path / "model" / "launch.json").read_text())
    assert launch["predicted"]["seconds"]["low"] > 0
    assert main([*train, "--nodes", "2", "--output", str(tmp_path / "two"), *rates]) == 1
    assert "calibrate with as many" in capsys.readouterr().err


@pytest.mark.soak
@pytest.mark.usefixtures("brief")
def test_the_rates_of_fasttext_predict_fasttext_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--model", "fasttext", "--optimiser", "sgd", "--buckets", "1000", "--threads", "1")
    assert main(["calibrate", "--local", "--output", str(tmp_path / "rates"), *options]) == 0
    rates = read_rates([tmp_path / "rates"])
    assert rates.model["model"] == "fasttext"
    data = tmp_path / "dataset.h5"
    words = np.arange(20_000, dtype=np.uint32) % 60 + 2
    rows = RowBlock(words, np.full(2000, 10), np.arange(2000, dtype=np.uint8) % 2, np.ones(2000, np.uint8))
    settings = Settings(ragged=True, vocabulary_size=60)
    write_dataset(data, train=rows, test=rows.part(0, 200), vocabulary=VOCABULARY, settings=settings)
    capsys.readouterr()
    train = ("train", "--local", "--data", str(data), "--rates", str(tmp_path / "rates"), "--threads", "1")
    assert main([*train, *options, "--epochs", "5", "--output", str(tmp_path / "model"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["global_batch"] == 192
    config = TrainConfig(data=data, output=tmp_path, model="fasttext", optimiser="sgd", epochs=5)
    work = PreparedDataset(str(data)).work(config, 1)
    assert (work.global_batch, work.rows, work.validation) == (192, summary["rows"], 100)
    assert summary["launch"]["predicted"]["seconds"]["middle"] == pytest.approx(predict_training(work, rates).all)
    assert main([*train, "--model", "lstm", "--output", str(tmp_path / "lstm")]) == 1
    assert "runs with --model fasttext, and this training has lstm" in " ".join(capsys.readouterr().err.split())
    local = ("plan", "--local", "--rows", "50000", "--global-batch", "64", "--rates", str(tmp_path / "rates"))
    assert main(list(local)) == 0
    assert "measured, fasttext" in capsys.readouterr().out


def test_a_run_that_is_stopped_ends_the_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig(data=tmp_path, output=tmp_path)
    datasets = [calibration.BriefDataset(64, tmp_path, 1488), calibration.BriefDataset(128, tmp_path, 2976)]
    made = []

    def train(_source: object, asked: TrainConfig, *_: object) -> dict[str, Any]:
        made.append(asked.global_batch)
        return {"stopped": True, "stopped_by": "SIGTERM"}

    monkeypatch.setattr(calibration, "train", train)
    with Bars() as bars, pytest.raises(Interrupt) as ended:
        calibration.train_briefly(config, datasets, ThisMachine(), bars)
    assert ended.value.number == signal.SIGTERM
    assert made == [64]


def test_too_few_rows_are_named(tmp_path: Path) -> None:
    data = tmp_path / "dataset.h5"
    rows = make_rows(200, seed=1)
    settings = Settings(row_length=20, vocabulary_size=60)
    write_dataset(data, train=rows, test=rows, vocabulary=VOCABULARY, settings=settings)
    config = TrainConfig(data=data, output=tmp_path / "rates")
    with Bars() as bars, pytest.raises(ShoalError, match="too few to measure by"):
        calibration.calibrate(config, ThisMachine(1), data=str(data), bars=bars)
