"""`shoal experiment run`: makes all runs, continues stopped ones, and shows the results."""

import json
from pathlib import Path

import pytest

from bootstrap.cli.main import main
from bootstrap.progress import Bars
from bootstrap.training.places.local import LocalPlace
from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from tests.trainer.conftest import VOCABULARY, make_rows
from tests.trainer.embeddings import made_text

TRAINING = """\
about: Two against one.
kind: training
repeats: {repeats}
settings: {{hidden: 8, epochs: {epochs}, global_batch: 64, threads: 1, record_every: 1, checkpoint_minutes: 0.004}}
baseline: one
arms:
  - {{name: one, local: {{slow: [{factor}]}}, topology: reference-1g3}}
  - {{name: two, local: {{slow: [{factor}, {factor}]}}, topology: reference-2g3}}
  - {{name: elsewhere, topology: reference-4g3}}
"""
WORDS = """\
about: Together and apart.
kind: words
repeats: 1
text: {tokeniser: spaces}
settings: {model: skipgram, embedding: 8, rank_batch: 4, min_count: 1, epochs: 1, threads: 1, pip: true}
baseline: one
arms:
  - {name: one, local: {ranks: 1}}
  - {name: two, local: {ranks: 2}, topology: embeddings-4x1gpu}
"""
PREPROCESSING = """\
about: Shares.
kind: preprocessing
repeats: 1
baseline: half
arms:
  - {name: half, share: 0.5, local: {workers: 1}}
  - {name: all, local: {workers: 1}, topology: reference-emr-2}
  - {name: many, local: {workers: 1000}}
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "dataset.h5"
    settings = Settings(row_length=20, vocabulary_size=60)
    rows = make_rows(600, seed=1)
    write_dataset(path, train=rows, test=make_rows(60, seed=2), vocabulary=VOCABULARY, settings=settings)
    return path


def written(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def shoal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    status = main(["experiment", "run", *map(str, arguments)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


class Stopping(Bars):
    """Raises KeyboardInterrupt once, after 200 rows."""

    pending = True

    def at(self, done: int) -> None:
        super().at(done)
        if Stopping.pending and done > 200:
            Stopping.pending = False
            raise KeyboardInterrupt


@pytest.mark.soak
def test_a_stopped_experiment_continues(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, TRAINING.format(repeats=2, epochs=2, factor=10))
    here = ("--local", "--data", data, "--output", tmp_path / "out", "--arms", "two")
    monkeypatch.setattr("bootstrap.cli.learning.experiment.Bars", Stopping)
    monkeypatch.setattr(LocalPlace, "pause", 0.05)
    status, out, err = shoal(capsys, file, *here)
    assert status == 130
    assert "to continue, run the same command again" in " ".join(err.split())
    assert "No run has finished." in out
    record = tmp_path / "out/two/1/record.jsonl"
    status, out, err = shoal(capsys, file, *here)
    assert status == 0, err
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    first, second = (line for line in lines if line["kind"] == "start")
    assert (first["from_step"], second["from_step"] > 0) == (0, True)
    assert second["config"]["seed"] == 1
    before = record.read_bytes()
    (tmp_path / "out/two/2/summary.json").unlink()  # as if the run had been killed just before its end
    status, out, err = shoal(capsys, file, *here)
    assert (status, "1 of 2 runs already finished" in err) == (0, True)
    assert record.read_bytes() == before


@pytest.mark.soak
def test_preprocessing_is_measured_and_its_datasets_are_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("good", "bad", "plain", "quick", "slow", "kind")
    texts = [" ".join(words[(number + each) % 6] + "x" * (number // 9) for each in range(4)) for number in range(400)]
    lines = [f'{{"reviewText": "{text}", "overall": {1 + number % 5}}}\n' for number, text in enumerate(texts)]
    (tmp_path / "reviews.json").write_text("".join(lines))
    file = written(tmp_path, PREPROCESSING)
    here = ("--local", "--input", tmp_path / "reviews.json", "--output", tmp_path / "out", "--json")
    status, out, err = shoal(capsys, file, *here)
    half, whole, many = json.loads(out)["arms"]
    assert status == 0, err
    assert "left out: 'many', because it needs 1000 cores" in err
    assert (half["finished"], whole["finished"], many["finished"]) == (1, 1, 0)
    share = tmp_path / "out/.input/0.5/0-reviews.json"
    assert share.read_text().splitlines(keepends=True) == [lines[0], *lines[1::2]]
    measured = json.loads((tmp_path / "out/all/1/preprocessing.json").read_text())
    assert (measured["bytes"], measured["lines"], measured["workers"]) == (sum(map(len, lines)), 400, 1)
    assert list((tmp_path / "out").rglob("*.h5")) == []


@pytest.mark.soak
def test_an_experiment_on_word_embeddings_reads_its_text_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text("\n".join(made_text.lines(400)))
    pairs = made_text.pairs(tmp_path / "topics.txt")
    here = (written(tmp_path, WORDS), "--local", "--output", tmp_path / "out", "--input", tmp_path / "text.txt")
    status, out, err = shoal(capsys, *here, "--similarity", pairs, "--json")
    assert status == 0, err
    one, two = json.loads(out)["arms"]
    assert (one["finished"], two["finished"]) == (1, 1)
    assert {"pip_loss", "pip_mean_square", "similarity"} <= one["measures"].keys()
    assert one["words"]["words_a_second"] > 0
    assert one["bytes_a_step"] == 0 < two["bytes_a_step"]
    assert len(list((tmp_path / "out/.text/reader-0").glob("part-*"))) == 1
    status, out, err = shoal(capsys, *here)
    assert (status, "2 of 2 runs already finished" in err) == (0, True)
    assert "best PIP loss" in " ".join(out.split())
    with (tmp_path / "text.txt").open("a") as text:
        text.write("\nanother line")
    status, _, err = shoal(capsys, *here)
    assert (status, "contains runs on different data" in " ".join(err.split())) == (1, True)


def test_other_folders_in_the_output_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    precious = tmp_path / "out/all/1/precious"
    precious.parent.mkdir(parents=True)
    precious.write_text("mine")
    (tmp_path / "reviews.json").write_text("x")
    file = written(tmp_path, PREPROCESSING)
    status, _, err = shoal(capsys, file, "--local", "--input", tmp_path / "reviews.json", "--output", tmp_path / "out")
    assert (status, "out/all/1 already exists and is not from this experiment" in "".join(err.split("\n"))) == (1, True)
    assert precious.read_text() == "mine"
    assert not (tmp_path / "out/experiment.json").exists()
