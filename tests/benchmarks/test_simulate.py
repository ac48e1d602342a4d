"""`python -m benchmarks simulate`, on few steps."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import record, simulate
from tests.experiments.forecast.test_training import a_run

Sizes = list[dict[str, Any]]


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Sizes]:
    """Simulates as a command line asks, and returns the record of each size."""
    monkeypatch.setattr(record.Log, "folder", tmp_path / "results")

    def run(*arguments: str) -> Sizes:
        simulate.main([*arguments, "--steps", "20", "--epochs", "2"])
        sizes: Sizes = json.loads((tmp_path / "results" / "simulate.json").read_text())["sizes"]
        return sizes

    return run


def test_it_compares_balancers_on_mixed_gpus(
    simulated: Callable[..., Sizes], capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = simulated()
    assert found["gpus"] == 4
    assert found["balancers"]["steps"]["waiting"] < found["balancers"]["off"]["waiting"]
    assert "| cannikin |" in capsys.readouterr().out


def test_it_goes_to_hundreds_of_gpus(simulated: Callable[..., Sizes]) -> None:
    assert simulated("--nodes", "p4d.24xlarge:32", "--balance", "steps")[0]["gpus"] == 256


def test_it_shows_where_efficiency_falls(simulated: Callable[..., Sizes], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--nodes", "g5.12xlarge:1", "--scale", "8", "--balance", "off")
    found = {}
    for batch in ("--rank-batch", "--global-batch"):
        assert [each["gpus"] for each in simulated(*asked, batch, "1024")] == [4, 8, 16, 32]
        lines = [line.split("|") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
        linear = lines[0].index(next(cell for cell in lines[0] if cell.strip() == "of linear"))
        found[batch] = [float(cells[linear].strip().rstrip("%")) for cells in lines[2:]]
        assert found[batch][0] == 100
    assert found["--global-batch"][-1] < found["--rank-batch"][-1] < 100


def test_an_exchange_that_overlaps_hides_what_is_sent(simulated: Callable[..., Sizes]) -> None:
    asked = ("--nodes", "g5.24xlarge:8", "--rank-batch", "4900", "--gradients", "100MB", "--balance", "off")
    rows, ddp = (simulated(*asked, "--exchange", how)[0]["balancers"]["off"]["all_reduce"] for how in ("rows", "ddp"))
    assert rows > 1
    assert ddp == 0


def test_ranks_that_were_measured_take_the_place_of_the_catalogue(
    simulated: Callable[..., Sizes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for batch in (64, 256):
        a_run(tmp_path / "rates" / str(batch), batch=batch, rows=batch * 20)
    measured = ("--rates", str(tmp_path / "rates"))
    (found,) = simulated(*measured, "--global-batch", "128", "--balance", "off", "steps")
    assert found["gpus"] == 2
    assert found["balancers"]["steps"]["waiting"] < found["balancers"]["off"]["waiting"]
    with pytest.raises(SystemExit):
        simulated(*measured, "--scale", "4")
    assert "--scale, --exchange and --gradients go with --nodes" in capsys.readouterr().err
