"""`shoal train --input` with many classes, and a stopped command that is repeated."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bootstrap.cli.command import shoal, shoal_here
from tests.waiting import PATIENCE, until


def test_too_many_classes_are_refused(tmp_path, monkeypatch, messages) -> None:
    monkeypatch.chdir(tmp_path)
    done = shoal_here("train", "--local", "--input", "in.json", "--output", "out", "--classes", *map(str, range(1_001)))
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    messages.check(done.stderr.rstrip())


@pytest.mark.soak
def test_more_than_256_classes_are_supported(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    classes = [f"class{number}" for number in range(300)]
    texts = [f"__label__class{n % 300} word{n % 300} and number {n}, word{n % 300}\n" for n in range(6_000)]
    Path("in.txt").write_text("".join(texts))
    options = ("--local", "--model", "fasttext", "--epochs", "10", "--cache", "cache")
    done = shoal("train", *options, "--input", "in.txt", "--classes", *classes, "--output", "out", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["accuracy"] > 0.95
    assert summary["confusion"]["classes"] == classes
    Path("new.txt").write_text("word7 and word7\nword299 and word299\n")
    answers = shoal("predict", "--model", "out", "new.txt")
    assert [line.split("\t")[0] for line in answers.stdout.splitlines()] == ["class7", "class299"]


@pytest.mark.soak
def test_a_command_stopped_while_reading_leaves_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    texts = (f"{('awful', 'fine')[n % 2]} text {n} {'with more words ' * 100}" for n in range(30_000))
    lines = (json.dumps({"text": text, "label": n % 2}) + "\n" for n, text in enumerate(texts))
    Path("in/texts.json").write_text("".join(lines))
    command = ["train", "--local", "--model", "fasttext", "--input", "in", "--output", "in/model"]
    command += ["--epochs", "2", "--batch-size", "64", "--cache", "cache"]

    def parts() -> list[Path]:
        return list(Path("cache").glob("**/.texts-*/*"))

    def stopped_by(number: int) -> tuple[int, str]:
        """Stop the command while it reads; return its status and errors."""
        process = subprocess.Popen(
            [sys.executable, "-m", "bootstrap.cli.main", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        until(lambda: parts() or process.poll() is not None, every=0.01)
        assert process.poll() is None, process.communicate()
        process.send_signal(number)
        _, printed = process.communicate(timeout=PATIENCE)
        return process.returncode, printed

    for number in (signal.SIGINT, signal.SIGTERM):
        assert stopped_by(number) == (128 + number, "shoal: interrupted\n")
        assert [path for name in ("cache", "in/model") for path in Path(name).rglob("*") if path.is_file()] == []
        assert parts() == []
    more = Path("in/more.json")
    more.write_text('{"text": "another dataset", "label": 1}\n')
    stopped_by(signal.SIGKILL)
    more.unlink()
    assert parts() != []
    done = shoal(*command, "--json")
    assert (done.returncode, json.loads(done.stdout)["rows_seen"] > 50_000) == (0, True)
    assert parts() == []
