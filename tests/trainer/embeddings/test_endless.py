"""Runs on text that has no end, with the defaults for it: they learn, and end when they are asked to."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from corpus.stream.parts import part_numbers
from corpus.stream.reader import read_stream
from corpus.stream.settings import StreamSettings, write_settings
from tests.corpus.stream.reading import begin
from tests.corpus.stream.sender import Sender
from tests.trainer.conftest import Launch
from tests.trainer.embeddings import made_text
from trainer.config import configured
from trainer.errors import TrainingError

UNTRAINED = 4.16
"""The loss of a pair of a model that knows nothing: log 2 for the pair, and for each of five drawn words."""
SMALL = ("--embedding", "24", "--min-count", "1", "--subsample", "0", "--threads", "1")
OPTIONS = {
    "skipgram": ("--model", "skipgram"),
    "char-lstm": ("--model", "char-lstm", "--hidden", "16", "--character-embedding", "8"),
}


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text that came by a socket, of which the sender has closed its end: as much as a run has learnt from so far."""
    stream = tmp_path_factory.mktemp("endless") / "stream"
    with Sender([line.encode() for line in made_text.lines(5_000)]) as sender:
        write_settings(stream, StreamSettings(sources=(sender.address,), tokeniser="spaces", part_rows=64))
        read_stream(stream, 0, 1)
    return stream


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_text.pairs(tmp_path_factory.mktemp("pairs") / "topics.txt")


def summary(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "summary.json").read_text())
    return found


def train(launch: Launch, ranks: int, text: Path, output: Path, *options: Any) -> dict[str, Any]:
    process = launch(ranks, "-m", "trainer", "--data", text, "--output", output, *SMALL, *options)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return summary(output)


@pytest.mark.parametrize(
    ("model", "ranks", "mode"),
    [
        ("skipgram", 0, "sync"),
        pytest.param("skipgram", 2, "average:5", marks=pytest.mark.slow),
        pytest.param("skipgram", 2, "async:5", marks=pytest.mark.slow),
        pytest.param("char-lstm", 0, "sync", marks=pytest.mark.slow),
    ],
)
def test_the_defaults_learn_from_text_without_an_end(
    launch: Launch, endless: Path, pairs: Path, tmp_path: Path, model: str, ranks: int, mode: str
) -> None:
    found = train(launch, ranks, endless, tmp_path, *OPTIONS[model], "--mode", mode, "--similarity", pairs)
    print(found["loss"], found["similarity"])
    assert found["loss"] < 0.75 * UNTRAINED
    assert found["similarity"] > 0.8
