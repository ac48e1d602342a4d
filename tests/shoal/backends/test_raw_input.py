"""Tests of the dataset of raw texts: it is made once, reused, and made again if incomplete."""

import importlib
import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest

from corpus.dataset import open_dataset
from corpus.dataset_settings import Settings
from corpus.reading.sources import Inputs
from shoal.runs.sources.texts import TextsSource, dataset_of_texts

Find = Callable[..., Path]


def make_or_find(folder, **settings):
    """Make or find the dataset of a folder's in.json. Unlike a nested function, other processes can call it."""
    return dataset_of_texts(
        TextsSource(
            inputs=Inputs(files=(str(folder / "in.json"),)),
            settings=replace(Settings(), **settings),
            max_malformed=0.05,
        ),
        output=folder / "model",
        cache=folder / "cache",
    )


def wait_for_all(barrier):
    """Wait for the other process. Both processes have then imported the code that takes long to import."""
    importlib.import_module("jobs.training")
    barrier.wait()


@pytest.fixture
def find(tmp_path):
    """Return a function that makes or finds the dataset of a file with given settings."""
    lines = (json.dumps({"text": f"text {n}", "overall": 1 + n % 5}) for n in range(200))
    (tmp_path / "in.json").write_text("\n".join(lines))

    return partial(make_or_find, tmp_path)


def files_below(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def reading(monkeypatch):
    """Return the list of datasets for which texts are read."""
    from jobs import training

    made = []
    really = training.make_training_dataset

    def make(request, folder, *arguments, **options):
        made.append(folder)
        return really(request, folder, *arguments, **options)

    monkeypatch.setattr(training, "make_training_dataset", make)
    return made


def test_texts_are_read_once(find, reading):
    assert find() == find()
    assert len(reading) == 1


def test_other_settings_and_changed_files_are_other_datasets(find, reading, tmp_path):
    found = {find(), find(test_share=0.3), find(positive_from=3)}
    with (tmp_path / "in.json").open("a") as file:
        file.write('\n{"text": "one more", "overall": 1}\n')
    assert len(found | {find()}) == len(reading) == 4


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_truncated_dataset_is_made_again(find, reading, kept):
    path = find()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    assert find() == path
    assert len(reading) == 2
    with open_dataset(path) as dataset:
        assert dataset.computed_digest() == dataset.digest


def test_two_simultaneous_commands_on_the_same_texts_find_the_same_dataset(find, tmp_path):
    context = get_context("spawn")
    barrier = context.Barrier(2)
    with ProcessPoolExecutor(1, context, initializer=wait_for_all, initargs=(barrier,)) as commands:
        other = commands.submit(find)
        wait_for_all(barrier)
        path = find()
    assert other.result() == path
    assert files_below(tmp_path / "cache") == [path]
    with open_dataset(path) as dataset:
        assert dataset.computed_digest() == dataset.digest


def test_lines_that_are_left_out_are_noted(find, tmp_path, capsys, messages):
    with (tmp_path / "in.json").open("a") as file:
        file.write("\n{\n" + '{"text": ";", "overall": 1}\n' * 2)
    messages.hide(find().parent.name, "DATASET")
    messages.check(" ".join(capsys.readouterr().err.split()))
