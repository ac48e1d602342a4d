"""`shoal simulate` as a person types it."""

import json

import pytest

from bootstrap.cli.main import main

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


@pytest.mark.parametrize(
    ("arguments", "part", "status"),
    [
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
