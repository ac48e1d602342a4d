"""`shoal train --input`: wrong input is reported, and a stopped command can be repeated."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bootstrap.cli.main import main
from tests.bootstrap.cli.command import shoal
from tests.waiting import PATIENCE, until

RunCommand = Callable[..., tuple[int, str, str]]


def lines(count: int, labels: Sequence[object] = (0, 1), words: int = 8) -> bytes:
    """Return `count` distinct texts as JSON lines. The first word determines the label."""
    kinds = [("awful", "bad"), ("fine", "good")]
    texts = (f"{kinds[n % 2][n % 3 % 2]} text {n} " + "with more words " * words for n in range(count))
    return b"".join(
        json.dumps({"text": text, "label": labels[n % len(labels)]}).encode() + b"\n" for n, text in enumerate(texts)
    )


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Function that runs a failing command in a temporary folder and returns its status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        line = ["train", "--local", "--model", "fasttext", "--output", "model", "--cache", "cache", *arguments]
        try:
            status = main(line)
        except SystemExit as end:
            status = int(str(end.code))
        printed = capsys.readouterr()
        return status, printed.out, " ".join(printed.err.split())

    return run


def files_below(*folders: str) -> list[str]:
    return [str(path) for folder in folders for path in Path(folder).rglob("*") if path.is_file()]


def test_too_many_classes_are_refused(train: RunCommand) -> None:
    status, _, printed = train("--input", "in.json", "--classes", *map(str, range(1_001)))
    assert (status, list(Path().iterdir())) == (2, [])
    assert "--classes names 1,001 classes, but training supports at most 1,000; give the most" in printed


# The tests below start real training runs.

OPTIONS = ("train", "--local", "--model", "fasttext", "--buckets", "1000", "--input", "in", "--output", "in/model")
TWO_EPOCHS = ("--epochs", "2", "--batch-size", "64")


class Run:
    """A command that reads or trains until it is stopped."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bootstrap.cli.main", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def until(self, what: Callable[[], object]) -> None:
        until(lambda: what() or self.process.poll() is not None, every=0.01)
        assert self.process.poll() is None, self.process.communicate()

    def stopped_by(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, printed = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, printed


@pytest.mark.soak
def test_more_than_256_classes_are_supported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    classes = [f"class{number}" for number in range(300)]
    texts = [f"__label__class{n % 300} word{n % 300} and number {n}, word{n % 300}\n" for n in range(6_000)]
    Path("in.txt").write_text("".join(texts))
    options = ("--local", "--model", "fasttext", "--buckets", "1000", "--epochs", "10", "--cache", "cache")
    done = shoal("train", *options, "--input", "in.txt", "--classes", *classes, "--output", "out", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["accuracy"] > 0.95
    assert summary["confusion"]["classes"] == classes
    Path("new.txt").write_text("word7 and word7\nword299 and word299\n")
    answers = shoal("predict", "--model", "out", "new.txt")
    assert [line.split("\t")[0] for line in answers.stdout.splitlines()] == ["class7", "class299"]


@pytest.mark.soak
def test_a_command_stopped_while_reading_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/texts.json").write_bytes(lines(30_000, words=100))
    command = (*OPTIONS, *TWO_EPOCHS, "--cache", "cache")
    for number in (signal.SIGINT, signal.SIGTERM):
        run = Run(*command)
        run.until(lambda: list(Path("cache").glob("**/.texts-*/*")))
        assert run.stopped_by(number) == (128 + number, "shoal: interrupted\n")
        assert files_below("cache", "in/model") == []
        assert list(Path("cache").glob("**/.texts-*/*")) == []
    killed = Run(*command, "--test-share", "0.2")  # another dataset
    killed.until(lambda: list(Path("cache").glob("**/.texts-*/*")))
    killed.stopped_by(signal.SIGKILL)
    assert list(Path("cache").glob("**/.texts-*/*")) != []
    done = shoal(*command, "--json")
    assert (done.returncode, json.loads(done.stdout)["rows_seen"] > 50_000) == (0, True)
    assert list(Path("cache").glob("**/.texts-*/*")) == []
