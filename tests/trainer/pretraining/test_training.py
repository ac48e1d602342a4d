"""Runs that learn a language model: on one rank, on two that share unevenly, stopped and gone on; what is saved."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from common.errors import TrainingError
from tests.trainer.conftest import Launch
from tests.trainer.pretraining import made_language
from trainer.classification.loading import load_model
from trainer.language.loading import load_language_model

LEARNING = (
    "--model", "awd-lstm", "--embedding", "12", "--hidden", "16", "--layers", "2", "--global-batch", "8", "--bptt", "9",
    "--epochs", "2", "--learning-rate", "2e-2", "--threads", "1", "--record-every", "1", "--direction", "both",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_language.dataset(tmp_path_factory.mktemp("data") / "dataset.h5")


@pytest.fixture(scope="module")
def alone(launch: Launch, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("alone")
    train(launch, 0, data, output)
    return output


def train(launch: Launch, ranks: int, data: Path, output: Path, *options: Any) -> None:
    process = launch(ranks, "-m", "trainer", "--data", data, "--output", output, *LEARNING, *options)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors


def summary(output: Path) -> dict[str, Any]:
    return json.loads((output / "summary.json").read_text())


def lines(output: Path, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (output / "record.jsonl").read_text().splitlines()]
    return [line for line in found if line["kind"] == kind]


def losses(output: Path) -> dict[int, float]:
    return {line["step"]: line["loss"] for line in lines(output, "step")}


def test_it_learns_what_follows_what(alone: Path) -> None:
    found = summary(alone)
    assert found["perplexity"] < 12  # of 24 words, of which two are likely
    first, last = (line["validation"]["loss"] for line in lines(alone, "epoch"))
    assert last < first
    assert found["tokens"] == pytest.approx(found["rows"] * found["tokens_a_row"])


def test_the_model_is_read_as_it_was_saved(alone: Path) -> None:
    found = load_language_model(str(alone))
    assert found.vocabulary == made_language.WORDS
    assert found.words == "tokens"
    assert found.about["tokens"] == 2 * summary(alone)["tokens"]
    assert found.measures["loss"] == summary(alone)["loss"]
    with pytest.raises(TrainingError, match="is a language model, and labels no texts"):
        load_model(alone)


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.txt", "config.json"])
def test_a_damaged_model_is_one_sentence(alone: Path, tmp_path: Path, name: str) -> None:
    copied = tmp_path / "model"
    copied.mkdir()
    for path in (alone / "model").iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
    file = copied / name
    file.write_bytes(file.read_bytes().replace(b"1", b"2", 1)[:-1])
    with pytest.raises(TrainingError, match="copy or export"):
        load_language_model(str(copied))


def test_states_follow_their_streams_from_rank_to_rank(launch: Launch) -> None:
    process = launch(2, "-m", "tests.trainer.pretraining.moving")
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors


def test_two_ranks_whose_shares_change_learn_what_one_learns(
    launch: Launch, data: Path, alone: Path, tmp_path: Path
) -> None:
    """The second rank is first slow and then fast, so that rows change their ranks, with their states."""
    train(launch, 2, data, tmp_path, "--slow", "1:6@20:1", "--rebalance-every", "2")
    assert len({tuple(line["split"]) for line in lines(tmp_path, "step")}) > 1
    assert losses(tmp_path) == pytest.approx(losses(alone), rel=2e-3)
    assert summary(tmp_path)["loss"] == pytest.approx(summary(alone)["loss"], rel=2e-3)


@pytest.mark.soak
def test_two_ranks_send_only_the_words_that_a_sampled_step_touches(launch: Launch, data: Path, tmp_path: Path) -> None:
    values = {"samples": 4, "epochs": 1, "global-batch": 2, "bptt": 3, "direction": "forward", "train-share": 0.2}
    sampled = [word for name, value in {**values, "learning-rate": 3e-3}.items() for word in (f"--{name}", value)]
    train(launch, 0, data, tmp_path / "one", *sampled)
    train(launch, 2, data, tmp_path / "two", *sampled, "--balance", "off")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=2e-3)


@pytest.mark.soak
def test_a_run_that_is_stopped_goes_on_exactly_on_another_number_of_ranks(
    launch: Launch, data: Path, alone: Path, tmp_path: Path
) -> None:
    arguments = ["-m", "trainer", "--data", data, "--output", tmp_path, *LEARNING]
    first = launch(2, *arguments, "--slow", "0:8", "1:8", "--balance", "3,1")
    record = tmp_path / "record.jsonl"
    while first.poll() is None and not (record.exists() and record.read_text().count('"kind": "step"') >= 5):
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    _, errors = first.communicate(timeout=60)
    assert 0 < summary(tmp_path)["rows_seen"] < summary(alone)["rows_seen"], errors
    train(launch, 0, data, tmp_path, "--resume")
    assert losses(tmp_path) == pytest.approx(losses(alone), rel=2e-3)
    own, other = (load_language_model(str(each)).model.state_dict() for each in (tmp_path, alone))
    for name, weights in own.items():
        torch.testing.assert_close(weights, other[name], rtol=0.05, atol=0.02)


def test_too_little_text_for_the_rows_of_a_step_is_an_error(launch: Launch, data: Path, tmp_path: Path) -> None:
    process = launch(0, "-m", "trainer", "--data", data, "--output", tmp_path, *LEARNING, "--global-batch", "100000")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "lower --global-batch, or give more text" in errors
