"""A search as it is started: what is chosen is trained as if it had been given, and a stopped search goes on."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from corpus.dataset import write_dataset
from corpus.dataset_settings import Settings
from tests.trainer.conftest import VOCABULARY, Launch, make_rows
from tests.trainer.test_fasttext import ragged
from trainer.options.section import shown_options
from trainer.output import checkpoint

QUICK = ("--buckets", "500", "--threads", "1", "--epochs", "2", "--hidden", "4")
SEARCH = ("-m", "trainer", "--model", "auto", *QUICK)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Whole texts, of up to 20 words, each of them twice."""
    path = tmp_path_factory.mktemp("texts") / "dataset.h5"
    settings = Settings(ragged=True, words="tokens", duplicates=True, stopwords="none", vocabulary_size=60)
    train, test = ragged(make_rows(1200, seed=1)), ragged(make_rows(400, seed=2))
    write_dataset(path, train=train, test=test, vocabulary=VOCABULARY, settings=settings)
    return path


def record(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "record.jsonl").read_text().splitlines()]


def summary(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "summary.json").read_text())
    return found


def ended(launch: Launch, ranks: int, *program: str | Path) -> None:
    process = launch(ranks, *program)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors


def test_what_is_chosen_is_trained_as_if_it_had_been_given(launch: Launch, texts: Path, tmp_path: Path) -> None:
    found, given = tmp_path / "found", tmp_path / "given"
    ended(launch, 0, *SEARCH, "--data", texts, "--output", found, "--minutes", "0.1")
    told, lines = summary(found), record(found)
    trials = [line for line in lines if line["kind"] == "trial"]
    assert [line["kind"] for line in lines[: len(trials) + 2]] == ["search", *["trial"] * len(trials), "start"]
    assert told["search"]["trials"] == [
        {name: line[name] for name in ("settings", "measures", "folds", "seconds")} for line in trials
    ]
    assert told["search"]["settings"] == [line["settings"] for line in trials if line["best"]][-1]
    assert told["search"]["verdict"] in [line["text"] for line in lines if line["kind"] == "note"]
    assert told["times"]["search"] >= told["search"]["seconds"] * 0.9
    assert sum(told["times"].values()) == pytest.approx(told["wall"], abs=0.1)
    chosen = shown_options(told["search"]["settings"]).split()
    ended(launch, 0, "-m", "trainer", *QUICK, *chosen, "--data", texts, "--output", given)
    one, other = (load_file(folder / "model" / "model.safetensors") for folder in (found, given))
    assert all(one[name].equal(other[name]) for name in other)
    assert summary(given)["accuracy"] == told["accuracy"] > told["majority"] + 0.1


@pytest.mark.soak
def test_a_search_that_is_stopped_goes_on_without_the_trials_that_it_made(
    launch: Launch, texts: Path, tmp_path: Path
) -> None:
    command = (*SEARCH, "--data", texts, "--output", tmp_path)
    process, end = launch(0, *command), time.monotonic() + 100
    while not ((tmp_path / "record.jsonl").exists() and '"trial"' in (tmp_path / "record.jsonl").read_text()):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    stopped = summary(tmp_path)
    assert (stopped["stopped"], stopped["accuracy"]) == (True, None)
    assert len(stopped["search"]["trials"]) >= 1
    assert not (tmp_path / "model").exists()
    (saved, state), _ = checkpoint.newest(tmp_path / "checkpoints")
    assert (saved.name, len(state["search"]["trials"])) == ("step-000000000.pt", len(stopped["search"]["trials"]))
    ended(launch, 0, *command, "--minutes", "0.05", "--resume")
    told = summary(tmp_path)
    assert told["search"]["trials"][: len(stopped["search"]["trials"])] == stopped["search"]["trials"]
    assert [line["trial"] for line in record(tmp_path) if line["kind"] == "trial"] == [
        *range(1, 1 + len(told["search"]["trials"]))
    ]
    assert (tmp_path / "model" / "config.json").exists()


@pytest.mark.soak
def test_the_run_that_follows_is_stopped_and_goes_on_with_what_was_chosen(
    launch: Launch, texts: Path, tmp_path: Path
) -> None:
    command = (*SEARCH, "--data", texts, "--output", tmp_path, "--minutes", "0.05", "--epochs", "20")
    command = (*command, "--record-every", "1")
    slowed = ("--slow", "0:1@80:3000")  # after as many steps as a fold has: the last 20
    process, end = launch(0, *command, *slowed), time.monotonic() + 100
    while not ((tmp_path / "record.jsonl").exists() and '"step", ' in (tmp_path / "record.jsonl").read_text()):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    before = summary(tmp_path)
    assert before["stopped"]
    ended(launch, 0, *command, "--resume")
    assert summary(tmp_path)["search"] == before["search"]
    assert summary(tmp_path)["steps"] > before["steps"] > 0


@pytest.mark.soak
def test_ranks_search_together(launch: Launch, texts: Path, tmp_path: Path) -> None:
    ended(launch, 2, *SEARCH, "--data", texts, "--output", tmp_path, "--minutes", "0.3")
    told = summary(tmp_path)
    assert told["world_size"] == 2
    assert told["accuracy"] > told["majority"] + 0.1
    assert told["search"]["trials"][0]["folds"] == 5
