"""`shoal experiment run`: makes all runs, continues stopped ones, and shows the results."""

import json
from functools import partial
from pathlib import Path

import pytest

from bootstrap.progress import Bars
from bootstrap.training.places.local import LocalPlace
from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from tests.bootstrap.cli.command import shoal_here
from tests.trainer.embeddings import made_text

TRAINING = """\
about: Two against one.
kind: training
repeats: {repeats}
settings: {{model: lstm, hidden: 8, epochs: {epochs}, global_batch: 64, threads: 1, checkpoint_minutes: 0.004}}
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
def data(tmp_path) -> Path:
    from tests.trainer.conftest import VOCABULARY, make_rows

    path = tmp_path / "dataset.h5"
    settings = Settings(row_length=20, vocabulary_size=60)
    rows = make_rows(600, seed=1)
    write_dataset(path, train=rows, test=make_rows(60, seed=2), vocabulary=VOCABULARY, settings=settings)
    return path


def written(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


run = partial(shoal_here, "experiment", "run")


class Stopping(Bars):
    """Raises KeyboardInterrupt once, after 200 rows."""

    pending = True

    def at(self, done: int) -> None:
        super().at(done)
        if Stopping.pending and done > 200:
            Stopping.pending = False
            raise KeyboardInterrupt


@pytest.mark.soak
def test_a_stopped_experiment_continues(tmp_path, data, monkeypatch) -> None:
    file = written(tmp_path, TRAINING.format(repeats=2, epochs=2, factor=10))
    arguments = (file, "--local", "--data", data, "--output", tmp_path / "out", "--arms", "two")
    monkeypatch.setattr("bootstrap.cli.learning.experiment.Bars", Stopping)
    monkeypatch.setattr(LocalPlace, "pause", 0.05)
    stopped = run(*arguments)
    assert stopped.returncode == 130
    assert "run the same command again" in stopped.stderr
    assert "No run has finished." in stopped.stdout
    record = tmp_path / "out/two/1/record.jsonl"
    continued = run(*arguments)
    assert continued.returncode == 0, continued.stderr
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    first, second = (line for line in lines if line["kind"] == "start")
    assert (first["from_step"], second["from_step"] > 0) == (0, True)
    assert second["config"]["seed"] == 1
    before = record.read_bytes()
    (tmp_path / "out/two/2/summary.json").unlink()  # as if the run had been killed just before its end
    again = run(*arguments)
    assert (again.returncode, "1 of 2 runs already finished" in again.stderr) == (0, True)
    assert record.read_bytes() == before


@pytest.mark.soak
def test_preprocessing_is_measured_and_its_datasets_are_removed(tmp_path) -> None:
    words = ("good", "bad", "plain", "quick", "slow", "kind")
    texts = [" ".join(words[(number + each) % 6] + "x" * (number // 9) for each in range(4)) for number in range(400)]
    lines = [f'{{"reviewText": "{text}", "overall": {1 + number % 5}}}\n' for number, text in enumerate(texts)]
    (tmp_path / "reviews.json").write_text("".join(lines))
    output = tmp_path / "out"
    done = run(
        written(tmp_path, PREPROCESSING), "--local", "--input", tmp_path / "reviews.json", "--output", output, "--json"
    )
    assert done.returncode == 0, done.stderr
    assert "needs 1000 cores" in done.stderr
    assert [arm["finished"] for arm in json.loads(done.stdout)["arms"]] == [1, 1, 0]
    share = output / ".input/0.5/0-reviews.json"
    assert share.read_text().splitlines(keepends=True) == [lines[0], *lines[1::2]]
    measured = json.loads((output / "all/1/preprocessing.json").read_text())
    assert (measured["bytes"], measured["lines"], measured["workers"]) == (sum(map(len, lines)), 400, 1)
    assert list(output.rglob("*.h5")) == []


@pytest.mark.soak
def test_an_experiment_on_word_embeddings_reads_its_text_once(tmp_path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(made_text.lines(400)))
    pairs = made_text.pairs(tmp_path / "topics.txt")
    arguments = (written(tmp_path, WORDS), "--local", "--output", tmp_path / "out", "--input", tmp_path / "text.txt")
    done = run(*arguments, "--similarity", pairs, "--json")
    assert done.returncode == 0, done.stderr
    one, two = json.loads(done.stdout)["arms"]
    assert (one["finished"], two["finished"]) == (1, 1)
    assert {"pip_loss", "pip_mean_square", "similarity"} <= one["measures"].keys()
    assert one["words"]["words_a_second"] > 0
    assert one["bytes_a_step"] == 0 < two["bytes_a_step"]
    assert len(list((tmp_path / "out/.text/reader-0").glob("part-*"))) == 1
    again = run(*arguments)
    assert (again.returncode, "2 of 2 runs already finished" in again.stderr) == (0, True)
    assert "best PIP loss" in again.stdout
    with (tmp_path / "text.txt").open("a") as text:
        text.write("\nanother line")
    other = run(*arguments)
    assert (other.returncode, "contains runs on different data" in other.stderr) == (1, True)
