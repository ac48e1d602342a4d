"""The benchmark of vectors that were learnt before, in a tiny size."""

import json
from pathlib import Path

import pytest

from benchmarks import downstream, record


@pytest.mark.soak
def test_each_model_learns_from_random_vectors_and_from_those_of_more_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record.Log, "folder", tmp_path / "records")
    monkeypatch.setattr(downstream, "_GENERATED", 300)
    (tmp_path / "more.txt").write_text("words, of more text\nmore words\n")
    options = ["--seeds=1", "--models", "lstm", "--size=8", "--labelled=.5", "--word-rates", ".02", ".2"]
    downstream.main([*options, "--text", str(tmp_path / "more.txt")])
    (runs,) = json.loads((tmp_path / "records" / "downstream.json").read_text())["runs"].values()
    assert {start: len(each) for start, each in runs["lstm"].items()} == {
        "random": 1,
        "random, as long": 1,
        "learnt before": 1,
    }
    for start in runs["lstm"].values():  # all starts choose from the same rates
        assert start[0]["word_rate"] in (0.02, 0.2)
    assert "learnt before, less this" in (tmp_path / "records" / "downstream.log").read_text()
