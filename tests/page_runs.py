"""Runs the shell commands of a page of the documentation in a folder, as a user does who answers every question with
yes."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from shoal.demo.reviews import write_reviews
from tests.command_user import ROOT, make_repository
from tests.pages import PREPARED, Page
from tests.shoal.cli.command import shoal
from tests.waiting import PATIENCE

PAGE_PATIENCE = 3 * PATIENCE  # a page has several commands, which each may take as long as a test
_FILES = {"reviews": "reviews", "dataset": "results/data", "model": "results/model"}
_QUOTED = 2_000  # characters of output in a failure's message


def prepare(folder: Path, *names: str, texts: tuple[int, ...] = (800, 400)) -> Path:
    """Write files of reviews, and on request their `dataset` and a `model` of it. Return the folder."""
    for number, count in enumerate(texts):
        write_reviews(folder / "reviews" / f"part-{number + 1}.jsonl", texts=count, seed=number)
    data, model = folder / _FILES["dataset"], folder / _FILES["model"]
    options = ("--local", "--model", "linear", "--epochs", "1")
    commands = {
        "dataset": ("preprocess", "--local", "--input", folder / "reviews", "--output", data),
        "model": ("train", *options, "--data", data / "dataset.h5", "--output", model),
    }
    for name in names:
        done = shoal(*commands[name])
        assert done.returncode == 0, done.stderr
    return folder


def run(page: Page, folder: Path, prepared: Path) -> None:
    """Copy the files that a page requires into a new folder, and run its blocks there, in their order."""
    assert set(page.prepare) <= set(PREPARED), f"{page.name} requires a name that tests/pages.py does not list"
    folder.mkdir()
    if "checkout" in page.prepare:
        make_repository(folder)
        (folder / "topologies").symlink_to(ROOT / "topologies")
    for name, path in _FILES.items():
        if name in page.prepare:
            shutil.copytree(prepared / path, folder / path)
    printed = starts(execute("\n".join(page.blocks("sh")), folder))
    if page.path.parent.name == "tutorial":
        shown = {start for block in page.blocks("text") for start in starts(block)}
        never = [start for start in shown if not any(line.startswith(start) for line in printed)]
        assert not never, f"{page.name} shows lines that no command printed: {never}"


def starts(text: str) -> set[str]:
    """The first words of each line, without names and numbers, which differ from run to run.

    A question ends its line, because the output lacks the user's Enter.
    """
    lines = text.replace("[y/N] ", "[y/N]\n").splitlines()
    first_words = (re.findall(r"[A-Za-z]{3,}", line.split("...")[0])[:3] for line in lines)
    return {" ".join(words) for words in first_words if words}


def execute(commands: str, folder: Path) -> str:
    """Run shell commands in a folder. Return what they printed."""
    typed, keyboard = os.openpty()
    os.write(typed, b"y\n" * 20)
    try:
        done = subprocess.run(
            ["bash", "-eux", "-c", commands],
            cwd=folder,
            stdin=keyboard,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PAGE_PATIENCE,
            check=False,
        )
    finally:
        os.close(typed)
        os.close(keyboard)
    assert done.returncode == 0, done.stdout[-_QUOTED:]
    return done.stdout
