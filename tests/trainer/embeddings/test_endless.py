"""Runs on text that has no end, with the defaults for it: they learn, and end when they are asked to."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus.stream.reader import read_stream
from tests.corpus.stream.reading import begin, read_until
from tests.corpus.stream.sender import Sender
from tests.trainer.conftest import Launch
from tests.trainer.embeddings import made_text
from tests.trainer.runs import finish, notes, summary, train_here, wait_for_lines
from tests.waiting import until
from trainer.embeddings.vectors import WordVectors, open_vectors

UNTRAINED = 4.16
"""The loss of a pair of a model that knows nothing: log 2 for the pair, and for each of five drawn words."""
SMALL = ("--min-count", "1", "--threads", "1")
OPTIONS = {
    "skipgram": ("--model", "skipgram"),
    "char-lstm": ("--model", "char-lstm", "--hidden", "16", "--character-embedding", "8"),
}


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text that came by a socket, of which the sender has closed its end: as much as a run has learnt from so far."""
    stream = tmp_path_factory.mktemp("endless") / "stream"
    with Sender([line.encode() for line in made_text.bursts(8_000)]) as sender:
        begin(stream, sender.address, part_rows=64)
        read_stream(stream, 0, 1)
    return stream


def train(launch: Launch, ranks: int, text: Path, output: Path, *options: Any) -> dict[str, Any]:
    if ranks == 0:
        return train_here(output, "--data", text, *SMALL, *options)
    finish(launch(ranks, "-m", "trainer", "--data", text, "--output", output, *SMALL, *options))
    return summary(output)


@pytest.mark.parametrize(
    ("model", "ranks", "mode"),
    [
        ("skipgram", 0, "sync"),
        pytest.param("skipgram", 2, "average:5", marks=pytest.mark.soak),
        pytest.param("skipgram", 2, "async:5", marks=pytest.mark.soak),
        pytest.param("char-lstm", 0, "sync", marks=pytest.mark.soak),
    ],
)
def test_the_defaults_learn_from_text_without_an_end(
    launch: Launch, endless: Path, tmp_path: Path, model: str, ranks: int, mode: str
) -> None:
    found = train(launch, ranks, endless, tmp_path, *OPTIONS[model], "--mode", mode, "--trust-network")
    assert found["loss"] < 0.8 * UNTRAINED


@pytest.mark.soak
def test_a_run_learns_from_as_many_words_as_it_is_asked_for_also_where_parts_are_not_full(
    launch: Launch, tmp_path: Path
) -> None:
    stream = begin(tmp_path / "stream", tmp_path / "texts", part_rows=64, follow=True)
    (tmp_path / "texts").mkdir()
    lines = made_text.bursts(4_000)
    for number in range(8):  # of eight visits the last seven leave a part that has a few rows each
        begin_at, end = (0, 3_300) if not number else (3_200 + 100 * number, 3_300 + 100 * number)
        (tmp_path / "texts" / str(number)).write_text("\n".join(lines[begin_at:end]) + "\n")
        read_until(stream, lambda now: now > 60)
    found = train(launch, 0, stream, tmp_path / "out", *OPTIONS["skipgram"], "--words", "78000")
    assert 78_000 <= found["words_seen"] <= 80_000
    assert not found["stopped"]


@pytest.mark.soak
def test_a_run_says_why_it_has_ended_before_its_words(launch: Launch, endless: Path, tmp_path: Path) -> None:
    found = train(launch, 0, endless, tmp_path, *OPTIONS["skipgram"], "--words", "1000000")
    assert found["words_seen"] == 160_000
    expected = "the run has ended after 160,000 of the 1,000,000 words that --words asks for"
    assert any(note.startswith(expected) for note in notes(tmp_path))


@pytest.mark.soak
@pytest.mark.parametrize("begun", [False, True], ids=["no text yet", "text for a vocabulary"])
def test_a_run_ends_on_time_and_on_request_also_where_its_source_is_silent(
    launch: Launch, tmp_path: Path, begun: bool
) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "1").write_text("\n".join(made_text.bursts(2_000)) + "\n" if begun else "")
    stream = begin(tmp_path / "stream", tmp_path / "texts", part_rows=64, follow=True)
    read_until(stream, lambda now: now > 60)
    words = ("--vocabulary-words", "1000") if begun else ()
    arguments = ["-m", "trainer", "--data", stream, *SMALL, *OPTIONS["skipgram"], *words]
    late = launch(0, *arguments, "--output", tmp_path / "late", "--minutes", "0.02")
    errors = finish(late, status=0 if begun else 1)
    assert begun or "no text has come from" in errors
    asked = launch(0, *arguments, "--output", tmp_path / "asked")
    if begun:
        wait_for_lines(asked, tmp_path / "asked", "waiting")
    else:
        until(lambda: _handles(asked.pid, signal.SIGTERM))
    asked.send_signal(signal.SIGTERM)
    errors = finish(asked, status=0 if begun else 1)
    assert begun or "stopped before enough text had come" in errors


def _handles(process: int, number: signal.Signals) -> bool:
    """Whether a process has a handler of its own for a signal."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return bool(int(status["SigCgt"], 16) >> (number - 1) & 1)


@pytest.mark.soak
@pytest.mark.parametrize(("model", "mode"), [("skipgram", "sync"), ("skipgram", "average:5"), ("char-lstm", "sync")])
def test_words_that_come_later_get_embeddings_too(launch: Launch, tmp_path: Path, model: str, mode: str) -> None:
    later = [line.replace("word", "later") for line in made_text.bursts(4_000, seed=1)]
    with Sender([line.encode() for line in [*made_text.bursts(4_000), *later]]) as sender:
        stream = begin(tmp_path / "stream", sender.address, part_rows=64)
        read_stream(stream, 0, 1)
    few = ("--vocabulary-words", "20000", "--mode", mode)
    found = train(launch, 2, stream, tmp_path / "grown", *OPTIONS[model], *few, "--new-words", "2000")
    kept = train(launch, 2, stream, tmp_path / "kept", *OPTIONS[model], *few, "--new-words", "0")
    assert found["new_words"] > kept["vocabulary"] > kept["new_words"] == 0
    assert found["vocabulary"] == kept["vocabulary"] + found["new_words"]
    vectors = open_vectors(str(tmp_path / "grown"))
    assert vectors.find("later1") is not None
    assert len(vectors.words) == found["vocabulary"]
    assert open_vectors(str(tmp_path / "kept")).find("later1") is None
    if (model, mode) == ("skipgram", "sync"):
        assert _likeness(vectors, same=True) > _likeness(vectors, same=False) + 0.08


def _likeness(vectors: WordVectors, *, same: bool) -> float:
    """The mean cosine of words that came later, of one subject or of two."""
    places = {int(word[len("later") :]): row for row, word in enumerate(vectors.words) if word.startswith("later")}
    subjects = np.array([number // 10 for number in places if number >= 100])
    matrix = vectors.matrix[[row for number, row in places.items() if number >= 100]]
    matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    of_one = subjects[:, None] == subjects
    np.fill_diagonal(of_one, val=False)
    chosen = of_one if same else subjects[:, None] != subjects
    return float((matrix @ matrix.T)[chosen].mean())
