"""Fixtures: a small dataset that can be learned, and runs of the trainer as users start them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from corpus.dataset import RowBlock, write_dataset
from corpus.dataset_settings import Settings
from tests.forking import PIPE, ForkedProcess, WarmParent
from tests.trainer import forked
from trainer.config import RANK_ENVIRONMENT

RAGGED = Settings(ragged=True, words="tokens", duplicates=True, stopwords="none", vocabulary_size=60)
VOCABULARY = [f"{kind}{letter}" for kind in ("good", "bad", "plain") for letter in "abcdefghijklmnopqrst"]


@pytest.fixture(autouse=True, scope="module")
def no_gpu() -> Iterator[None]:
    """Hide GPUs: there may be fewer GPUs than ranks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        yield


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Use one thread: waiting threads spin, and are many times slower while other tests run on the machine."""
    torch.set_num_threads(1)


def make_rows(count: int, *, seed: int, length: int = 20) -> RowBlock:
    """Return rows of 1 to `length` words, 7 in 10 positive. A third of the words determine the label; 1 row in 12 is
    mislabelled."""
    generator = np.random.default_rng(seed)
    labels = (generator.random(count) < 0.7).astype(np.uint8)
    lengths = generator.integers(1, length + 1, count).astype(np.uint16)
    telling = generator.random((count, length)) < 0.35
    telling[:, 0] = True
    own_kind = 2 + 20 * (1 - labels[:, None].astype(np.int64)) + generator.integers(0, 20, (count, length))
    plain = generator.integers(42, 62, (count, length))
    tokens = np.where(np.arange(length) < lengths[:, None], np.where(telling, own_kind, plain), 0)
    labels ^= (generator.random(count) < 1 / 12).astype(np.uint8)
    return RowBlock(tokens.astype(np.uint16), lengths, labels, labels * 4 + 1)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 2000 training rows, 400 test rows and 60 words."""
    path = tmp_path_factory.mktemp("data") / "dataset.h5"
    rows = {"train": make_rows(2000, seed=1), "test": make_rows(400, seed=2)}
    settings = Settings(row_length=20, vocabulary_size=60)
    write_dataset(path, **rows, vocabulary=VOCABULARY, settings=settings, stopwords=frozenset({"the"}))
    return path


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows as whole texts, without padding."""
    path = tmp_path_factory.mktemp("texts") / "dataset.h5"
    rows = {"train": make_rows(2000, seed=1), "test": make_rows(400, seed=2)}
    whole = {part: each._replace(tokens=each.tokens[each.tokens > 0]) for part, each in rows.items()}
    write_dataset(path, **whole, vocabulary=VOCABULARY, settings=RAGGED)
    return path


Launch = Callable[..., ForkedProcess]


@pytest.fixture(scope="session")
def warm_parent() -> Iterator[WarmParent]:
    """A process that has imported the trainer."""
    with WarmParent("tests.trainer.forked:prepare", RANK_ENVIRONMENT) as parent:
        yield parent


@pytest.fixture(scope="session")
def launch(warm_parent: WarmParent, tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """Return the function `launch(ranks, "-m", "trainer", ...)`, which starts a program on ranks of this machine
    (forked.py).

    With 0 ranks, it starts the program without torchrun. Keyword arguments are environment variables.
    """

    def start(ranks: int, *program: str | Path, **environment: str) -> ForkedProcess:
        whole = {**os.environ, **RANK_ENVIRONMENT, **environment}
        logs = tmp_path_factory.mktemp("ranks")
        return warm_parent.start(forked.__file__, ranks, logs, *program, environment=whole, stdout=PIPE, stderr=PIPE)

    return start
