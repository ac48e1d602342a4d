"""How fast this machine is beside the one whose figures predictions use: the same work, here and there.

Reviews are generated, preprocessed, and learnt by fastText's model. Do not change that work without new figures of the
machine that was measured, which are below.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bootstrap.demo.reviews import write_reviews
from bootstrap.progress import Bars
from bootstrap.training.calibration import BriefDataset, train_briefly
from bootstrap.training.places.this_machine import ThisMachine
from common.cores import cores
from common.errors import ShoalError
from corpus.reading.sources import Inputs
from experiments.forecast.machines import MachineSpeed
from jobs.pipeline import CORE_BYTES, preprocess_locally
from trainer.config import configured
from trainer.output.run_files import SUMMARY, read_json

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_TEXTS, _COPIES = 10_000, 40
"""Distinct reviews, and how often they are written, each time with another word: 4 MB, and 163 MB."""
_CORE_SECONDS = 8.8
"""What the copies take beyond the first reviews, on two busy cores of the machine that was measured (AMD EPYC, Zen 5),
times two: the median of three, of 8.7 to 8.8."""
_ROWS_A_SECOND = 239_000
"""That one core of it learns of them: the median of three, of 229,000 to 241,000."""


def machine_speed(bars: Bars) -> MachineSpeed:
    """Measure it, in about half a minute. Raises what preprocessing and training raise; Ctrl-C ends it, and leaves
    nothing."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        few, many = folder / "few.json", folder / "many.json"
        write_reviews(few, texts=_TEXTS)
        text = few.read_bytes()
        with many.open("wb") as file:
            for number in range(_COPIES):
                file.write(text.replace(b'"reviewText": "', b'"reviewText": "Lot %d. ' % number))
        size = many.stat().st_size
        bars.note("preprocessing")
        _preprocessed(few)  # loads what all of it needs
        start, _ = _preprocessed(few)
        seconds, rows = _preprocessed(many)
        if seconds <= start:
            raise ShoalError(f"other work made {_COPIES} times the reviews take no longer than a few; measure again")
        bars.note("training fastText's model")
        data = BriefDataset(256, many.with_suffix("") / "dataset.h5", rows)
        config = configured({"model": "fasttext", "epochs": 1, "data": data.path, "output": folder / "run"})
        with _without_gpus():
            (run,) = train_briefly(config, [data], ThisMachine(1), bars)
        rate = (read_json(run / SUMMARY) or {})["samples_per_second"]
    # Of many cores only so many have work; the others count as they do.
    used = min(cores(), max(1, size // CORE_BYTES))
    return MachineSpeed(together=_CORE_SECONDS / (seconds - start) * cores() / used, alone=rate / _ROWS_A_SECOND)


@contextmanager
def _without_gpus() -> Iterator[None]:
    """Ranks that start meanwhile find none: what is measured is a core."""
    before = os.environ.get(_VISIBLE)
    os.environ[_VISIBLE] = ""
    try:
        yield
    finally:
        os.environ.pop(_VISIBLE)
        if before is not None:
            os.environ[_VISIBLE] = before


def _preprocessed(file: Path) -> tuple[float, int]:
    """The seconds that it took, and the training rows that it made."""
    began = time.perf_counter()
    made = preprocess_locally(Inputs(files=(str(file),)), str(file.with_suffix("")))
    return time.perf_counter() - began, made.counts["train"]
