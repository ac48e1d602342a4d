"""The benchmarks of models of words: what texts are, and every part in a tiny size."""

import argparse
import gzip
import json
import os
from pathlib import Path

import pytest

from benchmarks import embeddings, record
from benchmarks.embeddings import gensim_part, link_part, modes_part, sources_part
from benchmarks.embeddings.texts import add_options, write_texts
from tests.trainer.embeddings.made_text import lines, pairs


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the records."""
    monkeypatch.setattr(record.Log, "folder", tmp_path / "records")
    return tmp_path / "records"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A text of two topics."""
    path = tmp_path / "topics.txt"
    path.write_text("\n".join(lines(3000)) + "\n")
    return path


def test_a_text_is_written_in_lower_case_with_punctuation_apart_as_far_as_asked(tmp_path: Path) -> None:
    given = tmp_path / "book.txt.gz"
    given.write_bytes(gzip.compress(b"It's HERE.\n\n...and there\nmore\n"))
    parser = argparse.ArgumentParser()
    add_options(parser)
    found = write_texts(parser.parse_args([str(given), "--megabytes", "0.000024"]), tmp_path)
    assert found["book"].path.read_text() == "it ' s here .\n... and there\n"
    assert found["book"].words == 8


def test_a_part_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        embeddings.main(["nothing"])
    assert "invalid choice: 'nothing'" in capsys.readouterr().err


@pytest.mark.soak
def test_vectors_are_learnt_by_both_programs_and_judged_by_the_same_sets(
    records: Path, text: Path, tmp_path: Path
) -> None:
    pytest.importorskip("gensim", reason="gensim is among requirements-bench.txt")
    cases = ["gensim, 1 worker", "Shoal, 1 rank"]
    told = str(pairs(tmp_path / "pairs.txt"))
    gensim_part.main([str(text), "--similarity", told, "--seeds", "1", "--epochs", "5", "--cases", *cases])
    (runs,) = json.loads((records / "embeddings-gensim.json").read_text())["runs"].values()
    assert list(runs) == cases
    for (run,) in runs.values():
        assert {"words_per_second", "similarity", "pip_loss", "pip_cosine"} <= set(run)
    assert runs["Shoal, 1 rank"][0]["similarity"] > 0.5


@pytest.mark.soak
def test_modes_are_compared_at_equal_epochs_and_at_equal_time(records: Path, text: Path) -> None:
    ways = ["one rank", "sync, one slow, off", "async, one slow"]
    asked = ["--seeds", "1", "--epochs", "2", "--size", "8", "--local-steps", "5", "--ways", *ways]
    modes_part.main([str(text), *asked])
    (runs,) = json.loads((records / "embeddings-modes.json").read_text())["runs"].values()
    assert list(runs["equal epochs"]) == ways
    assert list(runs["equal time"]) == ways[1:]
    one, sync = (runs["equal epochs"][way][0]["pip_loss"] for way in ways[:2])
    assert sync == pytest.approx(one, rel=1e-3)


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make network namespaces")
def test_what_ranks_on_two_hosts_send_and_learn_is_measured_beside_one_rank(records: Path) -> None:
    link_part.main(["--runs", "1", "--sizes", "20", "--rows", "8", "--megabytes", "0.2", "--ways", "sync", "async:20"])
    runs = json.loads((records / "embeddings-link.json").read_text())["runs"]["20, 8"]
    assert set(runs) == {"one rank", "sync", "async:20"}
    for way, ((speed, sent),) in runs.items():
        assert speed > 0
        assert way == "one rank" or sent > 1000


@pytest.mark.soak
def test_a_text_that_keeps_coming_is_learnt_from_beside_one_that_ends(
    records: Path, text: Path, tmp_path: Path
) -> None:
    told = str(pairs(tmp_path / "pairs.txt"))
    sources_part.main([str(text), "--seeds", "1", "--ranks", "1", "--size", "8", "--similarity", told])
    (runs,) = json.loads((records / "embeddings-sources.json").read_text())["runs"].values()
    assert list(runs) == ["finite, skipgram, sync, ranks: 1", "endless, skipgram, sync, ranks: 1"]
    for (run,) in runs.values():
        assert run["loss"] < 4.16
        assert run["similarity"] > 0.5
