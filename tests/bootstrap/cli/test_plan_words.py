"""`shoal plan --words`: how fast word embeddings are learnt in each mode, and from when several ranks beat one."""

import json
from pathlib import Path

import pytest

from bootstrap.cli.main import main
from tests.trainer.embeddings.made_text import lines

TOPOLOGY = ("embeddings-4x1gpu", "--offline", "--words", "100000000")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(["plan", *arguments]) == status
    return capsys.readouterr().out


def prediction(capsys: pytest.CaptureFixture[str], *more: str) -> dict:
    (plan,) = json.loads(printed(capsys, *TOPOLOGY, *more, "--json"))["plans"]
    return plan["prediction"]


def test_it_tells_words_a_second_bytes_and_dollars_of_each_mode_and_when_four_nodes_beat_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = printed(capsys, *TOPOLOGY)
    for part in ("one alone", "sync", "average:20", "async:20", "MB a step", "dollars", "From when 4 ranks", "T4"):
        assert part in text
    found = prediction(capsys)
    assert [each["way"] for each in found["ways"]] == ["one alone", "sync", "average:20", "async:20"]
    assert found["ways"][0]["bytes_a_step"] == 0
    assert found["beats_one_from"]["average:20"]["local_steps"]
    assert ["take average:6, sync" in found["notes"][0], "take async:6, sync" in found["notes"][1]] == [True, True]
    assert text.count("Note: ") == 2
    assert "average:32 or more (with worse word embeddings)" in text


def test_larger_vectors_send_more_and_other_modes_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    small, large = (prediction(capsys, "--embedding", size, "--mode", "average:7") for size in ("50", "200"))
    assert [each["way"] for each in small["ways"]] == ["one alone", "average:7"]
    assert small["ways"][1]["bytes_a_step"] < large["ways"][1]["bytes_a_step"]


@pytest.mark.soak
def test_a_training_of_one_rank_predicts_more_ranks_of_this_machine(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(lines(2000)) + "\n")
    asked = ["--local", "--input", str(text), "--embedding", "8", "--min-count", "1"]
    assert main(["embed", *asked, "--epochs", "1", "--output", str(tmp_path / "run")]) == 0
    capfd.readouterr()
    asked = ["--local", "--words", "1000000", "--rates", str(tmp_path / "run"), "--ranks", "2"]
    assert main(["plan", *asked, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [each["way"] for each in found["ways"]] == ["one alone", "sync", "average:20", "async:20"]
    assert main(["plan", "embeddings-4x1gpu", "--offline", "--words", "5", "--rates", str(tmp_path / "run")]) == 1
    assert "embeddings-4x1gpu has other GPUs" in capfd.readouterr().err
