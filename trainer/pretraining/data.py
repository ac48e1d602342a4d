"""The texts of a run on a language model: those of a dataset, whose labels are not looked at.

It learns from the training rows alone, without the validation part, and is evaluated on that and, once, on the test
rows. So a classifier that is trained on the same dataset later is tested on texts that no part of it has seen."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from common.errors import TrainingError
from corpus.text import FIRST_WORD
from trainer.classification.data import load_data, some_of
from trainer.classification.rows import Rows
from trainer.config import TrainConfig
from trainer.order import IntArray
from trainer.pretraining.streams import TextStreams, text_tokens
from trainer.task import TEST, TRAINING, VALIDATION

_VALIDATION_TOKENS, _TEST_TOKENS = 1 << 17, 1 << 18
"""The tokens that are predicted in an evaluation, about, if there are so many: each among all words, which takes a CPU
as long as several tokens of training. That many tell the loss to within a hundredth of a nat."""


@dataclass(frozen=True, kw_only=True)
class LanguageData:
    """What a language model learns from, and what else it has to know of it."""

    streams: TextStreams
    validation: Rows
    test: Rows
    vocabulary: list[str]
    """The words that have embeddings, in the order of their ids."""
    word_rule: str
    digest: str

    token_bytes: npt.NDArray[np.int64]
    """(ids of the dataset,): the bytes that a token stands for in a text, with the space behind a word."""

    @property
    def sizes(self) -> dict[str, int]:
        """Rows of streams to learn from, and texts to evaluate on."""
        return {
            TRAINING: self.streams.streams * self.streams.steps,
            VALIDATION: len(self.validation),
            TEST: len(self.test),
        }


def load(config: TrainConfig, *, streams: int, memory: int) -> LanguageData:
    """Read the texts of a dataset; of a step `streams` rows. Raises DataError and TrainingError, as `load_data`, and
    where there are too few texts."""
    data = load_data(
        config.data,
        learnt=config.rows_to_learn,
        rows_in="memory" if config.rows_in == "device" else config.rows_in,
        cache=config.cache,
        memory=memory,
        labels=False,
    )
    vocabulary = data.vocabulary[: config.vocabulary]
    found = TextStreams(
        data.training, streams=streams, window=config.bptt, words=len(vocabulary) + FIRST_WORD, seed=config.seed
    )
    if found.streams < streams or found.window_tokens(0) < 1:
        raise TrainingError(
            f"{config.data} has {found.tokens:,} tokens to learn from, fewer than a step of {streams} rows takes; "
            "lower --global-batch, or give more text"
        )
    return LanguageData(
        streams=found,
        validation=_some(data.validation, _VALIDATION_TOKENS),
        test=_some(data.test, _TEST_TOKENS),
        vocabulary=vocabulary,
        word_rule=data.words,
        digest=data.digest,
        token_bytes=_token_bytes(data.vocabulary, data.words),
    )


def _some(rows: Rows, tokens: int) -> Rows:
    """Some of the rows, with about so many tokens."""
    share = tokens / max(1, int(rows.lengths.sum(dtype=np.int64)))
    return some_of(rows, max(1, round(min(1.0, share) * len(rows))))


def _token_bytes(vocabulary: list[str], word_rule: str) -> npt.NDArray[np.int64]:
    if word_rule == "bytes":
        return np.ones(FIRST_WORD + len(vocabulary), np.int64)
    return np.array([1] * FIRST_WORD + [len(word.encode()) + 1 for word in vocabulary], np.int64)


def text_bytes(rows: Rows, numbers: IntArray, sizes: npt.NDArray[np.int64]) -> int:
    """The bytes of the texts `numbers` (n,), each with the newline at its end; `sizes` (ids,) are those of tokens."""
    return sum(int(sizes[text_tokens(rows, int(number))].sum()) + 1 for number in numbers)
