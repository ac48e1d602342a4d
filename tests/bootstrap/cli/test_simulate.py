"""`shoal simulate` as a person types it."""

import json
from pathlib import Path

import pytest

from bootstrap.cli.main import main
from tests.experiments.prediction.test_training import a_run

FEW = ("--steps", "20", "--epochs", "2")


def test_it_compares_balancers_on_mixed_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = ("--nodes", "g5.xlarge:3", "g4dn.xlarge:1")
    assert main(["simulate", *nodes, *FEW]) == 0
    assert "cannikin" in capsys.readouterr().out
    assert main(["simulate", *nodes, "--balance", "off", "steps", *FEW, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gpus"] == 4
    assert found["balancers"]["steps"]["seconds"] < found["balancers"]["off"]["seconds"]


def test_it_goes_to_hundreds_of_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--nodes", "p4d.24xlarge:32", "--balance", "steps", *FEW, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gpus"] == 256


def test_it_shows_where_efficiency_falls(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("simulate", "--nodes", "g5.12xlarge:1", "--scale", "8", "--balance", "off", *FEW)
    assert main([*asked]) == 0
    assert "all-reduce" in capsys.readouterr().out
    found = {}
    for batch in ("--rank-batch", "--global-batch"):
        assert main([*asked, batch, "1024", "--json"]) == 0
        sizes = json.loads(capsys.readouterr().out)["sizes"]
        assert [each["gpus"] for each in sizes] == [4, 8, 16, 32]
        found[batch] = [each["of_linear"]["off"] for each in sizes]
        assert found[batch][0] == 1
    assert found["--global-batch"][-1] < found["--rank-batch"][-1] < 1


def test_an_exchange_that_overlaps_hides_what_is_sent(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("simulate", "--nodes", "g5.24xlarge:8", "--rank-batch", "4900", "--gradients", "100MB", *FEW)
    found = []
    for exchange in ("rows", "ddp"):
        assert main([*asked, "--balance", "off", "--exchange", exchange, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["balancers"]["off"]["all_reduce"])
    assert found[0] > 1
    assert found[1] == 0


def test_ranks_that_were_measured_take_the_place_of_the_catalogue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for batch in (64, 256):
        a_run(tmp_path / str(batch), batch=batch, rows=batch * 20)
    measured = ("--rates", str(tmp_path))
    assert main(["simulate", *measured, "--global-batch", "128", "--balance", "off", "steps", *FEW, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["gpus"] == 2
    assert found["global_batch"] == 128
    both = found["balancers"]
    assert both["steps"]["seconds"] < both["off"]["seconds"]
    assert main(["simulate", *measured, "--scale", "4"]) == 2
    assert "--scale goes with --nodes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "part", "status"),
    [
        (("--nodes", "g5.xlarge:1", "--rates", "results"), "--nodes or --rates", 2),
        (("--nodes", "g5.xlarge:1", "--rank-batch", "9", "--global-batch", "9"), "give one", 2),
        (("--nodes", "g5.xlarge:5", "--scale", "256"), "at most 1,024", 2),
        (("--nodes", "g5.xlarge:1", "--steps", "100000", "--epochs", "11"), "is 1,100,000, but at most 1,000,000", 2),
        (("--nodes", "g5.xlarge:1", "--gradients", "much"), "not a size", 2),
        (("--nodes", "g5.xlarge:4", "--balance", "3,1,1"), "3 shares for 4", 2),
        (("--rates", "no-such-folder"), "does not exist", 1),
        (("--nodes", "g5.xlarge:none"), "g5.xlarge:3", 2),
        (("--nodes", "m5.xlarge:1"), "has no GPU", 2),
        (("--nodes", "g5.xlage:1"), "did you mean g5.xlarge", 1),
        (("--nodes", "p4d.24xlarge:200"), "at most 1,024", 2),
        (("--nodes", "g5.xlarge:1", "--balance", "magic"), "lb-bsp", 2),
        ((), "--nodes", 2),
    ],
)
def test_wrong_use_is_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], part: str, status: int
) -> None:
    assert main(["simulate", *arguments]) == status
    error = capsys.readouterr().err
    assert part in error
    assert error.count("\n") == 1
