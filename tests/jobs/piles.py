"""Helpers for tests of the pipeline: small sets of reviews, the pipeline, and a comparison with the oracle."""

import json
import os
import signal
from pathlib import Path

import h5py
import numpy as np

from common.progress import ProgressReporter, reporting
from corpus.dataset import open_dataset
from corpus.dataset_settings import REFERENCE
from corpus.reading.sources import Inputs
from corpus.text import EXTRA_STOPWORDS, load_stopwords
from jobs.local import preprocess_locally as preprocess_inputs
from jobs.plan import Plan, code_digest
from tests import oracle
from tests.reviews import snap_lines

NLTK = set(load_stopwords()) - set(EXTRA_STOPWORDS)


def preprocess(paths: list[Path], output: Path, *, to: ProgressReporter | None = None, **options):
    """Run the pipeline, by default with the settings of the reference, and report its progress to `to`."""
    with reporting(to or ProgressReporter()):
        inputs = Inputs(files=tuple(map(str, paths)))
        return preprocess_inputs(inputs, str(output), **{"settings": REFERENCE, **options})


def assert_equals_oracle(
    folder: Path, contents: list[bytes | oracle.File], nltk_words: set[str] | None = NLTK, **rules
) -> None:
    assert_dataset(folder, oracle.dataset(contents, nltk_words, **rules))


def assert_dataset(folder: Path, expected: tuple[dict[str, np.ndarray], list[str], dict[str, object]]) -> None:
    arrays, vocabulary, counts = expected
    with h5py.File(folder / "dataset.h5") as file:
        for path, array in arrays.items():
            assert file[path].dtype == array.dtype
            assert np.array_equal(file[path][:], array), path
        assert list(file["vocabulary"].asstr()[:]) == vocabulary
        in_file = json.loads(file.attrs["counts"])
    published = json.loads((folder / "counts.json").read_text())
    assert published == in_file
    reasons = {name: number for name, number in published["malformed_by_reason"].items() if number}
    assert {**published, "malformed_by_reason": reasons} == counts
    with open_dataset(folder / "dataset.h5") as dataset:
        assert dataset.computed_digest() == dataset.digest


def plan_in(work: Path | str, output: Path | str = "out", **fields) -> Plan:
    """Return a plan with this work folder."""
    usual = {"settings": REFERENCE, "stopwords": (), "max_malformed": 0.05, "part_bits": 1, "code": code_digest()}
    return Plan(work=str(work), output=str(output), **{**usual, **fields})


PLAIN = snap_lines(*((f"this lamp number word{chr(97 + n)} is bright", 1 + n % 5) for n in range(20)))


class Stages(ProgressReporter):
    """Recorder of finished steps, which can also kill the process in a step."""

    def __init__(self, fatal: str = "") -> None:
        self.seen: list[str] = []
        self.fatal = fatal

    def stage(self, name: str, total: int = 0, unit: str | None = None) -> None:
        self.seen.append(name)
        if name == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
