"""`shoal plan --tokens`: what pretraining a language model takes, and where one machine is enough."""

import json
from pathlib import Path
from typing import Any

import pytest

from bootstrap.cli.main import main
from tests.bootstrap.cli.test_pretrain import SMALL, texts

BYTES = (
    *("--unit", "bytes", "--embedding", "64", "--hidden", "4096", "--layers", "1", "--bptt", "256"),
    *("--global-batch", "2048", "--epochs", "1", "--gradient-bits", "16"),
)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["plan", *arguments]) == status
    return capsys.readouterr().out


def prediction(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    (plan,) = json.loads(printed(capsys, *arguments, "--offline", "--json"))["plans"]
    found: dict[str, Any] = plan["prediction"]
    return found


def test_it_tells_tokens_a_second_dollars_and_whether_one_machine_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "mixed-g5-g4dn", "--offline", "--tokens", "38G", *BYTES)
    for part in (
        "copy the data",
        "A10G not measured: 47% of its 70 TFLOPS, as an H200",
        "tokens a second, of 38,000,000,000.",
        "Measured: ",
        "Assumed: ",
        "One machine is enough: one g6e.xlarge, the cheapest node, takes ",
    ):
        assert part in text
    found = prediction(capsys, "mixed-g5-g4dn", "--tokens", "38G", *BYTES)
    assert found["one_machine"]["enough"]
    cheaper = prediction(capsys, "mixed-g5-g4dn", "--tokens", "38G", *BYTES, "--spot")
    assert cheaper["dollars"]["middle"] < found["dollars"]["middle"]


def test_of_all_topologies_the_cheapest_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(printed(capsys, "--all", "--tokens", "250M", "--preset", "medium", "--json"))["topologies"]
    prices = [each["dollars"]["middle"] for each in listed]
    assert prices == sorted(prices)
    assert len(prices) > 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("starter", "--hidden", "64"), "--hidden goes with --tokens"),
        (("starter", "--tokens", "5M", "--text", "data.h5"), "--text is a dataset"),
        (("starter", "--tokens", "5M", "--rows", "5"), "--rows does not go with --tokens"),
        (("starter", "--text", "data.h5", "--unit", "bytes"), "--unit goes with --tokens"),
        (("starter", "--tokens", "5M", "--bptt", "0"), "--bptt"),
        (("--tokens", "5M"), "go with topologies"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.soak
def test_a_run_here_predicts_another_and_says_whether_this_machine_is_enough(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain.txt").write_text("".join(f"{text}\n" for text in texts(1500)))
    asked = ("--local", "--input", str(tmp_path / "plain.txt"), "--output", str(tmp_path / "run"), *SMALL)
    assert main(["pretrain", *asked, "--cache", str(tmp_path / "cache")]) == 0
    capfd.readouterr()
    (data,) = (tmp_path / "cache").glob("texts-*/dataset.h5")
    rates = ("--rates", str(tmp_path / "run"))
    small, large = (
        json.loads(printed(capfd, "--local", "--tokens", size, *rates, "--global-batch", "8", "--json"))
        for size in ("15k", "30k")
    )
    assert 1.8 * small["computing"] < large["computing"] < 2.2 * small["computing"]
    found = prediction(capfd, "h100-8", "--text", str(data), *rates)
    assert found["one_machine"]["enough"]
    assert "this machine, by its rates, takes" in printed(capfd, "h100-8", "--offline", "--text", str(data), *rates)
    again = ("--local", "--data", str(data), "--output", str(tmp_path / "again"), *SMALL, *rates)
    assert main(["pretrain", *again]) == 0
    launch = json.loads((tmp_path / "again" / "launch.json").read_text())
    assert launch["predicted"]["seconds"]["middle"] == pytest.approx(launch["seconds"], rel=0.5)
