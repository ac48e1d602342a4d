"""Options of word embeddings: training pairs, negative samples, and evaluation."""

from dataclasses import dataclass
from typing import ClassVar

from common.errors import TrainingError
from trainer.options.section import ABOVE_0, AT_LEAST_0, AT_LEAST_1, Section, from_1_to, option

PIP_LOSS, PIP_MEAN_SQUARE, PIP_COSINE, SIMILARITY = "pip_loss", "pip_mean_square", "pip_cosine", "similarity"
"""Names of the measures of embeddings after each epoch. The last one is a prefix for each similarity set."""

ENDLESS = 1_000_000
"""Number of epochs of a run on an unbounded stream: effectively infinite, because the run ends when it is stopped."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions(Section):
    """Training pairs, negative samples, the end of a run, and the evaluation of embeddings."""

    title: ClassVar[str] = "word embeddings"

    window: int = option(
        "context window: its size is sampled from 1 to this for each word",
        default=5,
        must=from_1_to(1000),
    )
    negatives: int = option(
        "negative samples for each pair of words; neighbouring words share theirs",
        default=5,
        must=from_1_to(1000),
    )
    subsample: float = option(
        "subsampling threshold: words that are more frequent than this share of the text are left out at random, the "
        "more frequent the more often; 0: none",
        default=1e-3,
        must=AT_LEAST_0,
    )
    min_count: int = option("words that occur less often have no embedding", default=5, must=from_1_to(1 << 40))
    words: int | None = option(
        "stop after so many running words of text, at the end of a part or an epoch (default: after --epochs, and on "
        "an unbounded stream when it is stopped)",
        default=None,
        must=AT_LEAST_1,
    )
    minutes: float | None = option(
        "on an unbounded stream: stop so many minutes after the run has begun to wait for its first words",
        default=None,
        must=ABOVE_0,
    )
    vocabulary_words: int = option(
        "on an unbounded stream: make the vocabulary of its first words, so many, or as many as readers read ahead, "
        "or as have come in half of --minutes",
        default=1_000_000,
        must=AT_LEAST_1,
    )
    character_embedding: int = option(
        "dimensions of a character's embedding; --hidden and --layers are those of its LSTM",
        default=128,
        must=from_1_to(8192),
    )
    similarity: tuple[str, ...] = option(
        "word similarity sets (pairs with human scores) on which the embeddings are evaluated after each epoch",
        default=(),
        metavar="FILE",
        several=True,
    )
    pip: bool = option(
        "on finite text: measure the PIP loss, too: how far the inner products of the embeddings are from the "
        "shifted positive pointwise mutual information of the text's words",
        default=False,
    )
    analogy: tuple[str, ...] = option(
        "analogy sets on which the embeddings are evaluated at the end, and on an unbounded stream meanwhile, too",
        default=(),
        metavar="FILE",
        several=True,
    )


def require_text_of_kind(options: EmbeddingOptions, *, endless: bool) -> None:
    """Raise TrainingError for an option that does not apply to finite text, or to an `endless` stream."""
    if endless and options.pip:
        raise TrainingError("--pip goes with finite text, by whose counts embeddings are evaluated; leave it out")
    if not endless and options.minutes is not None:
        raise TrainingError("--minutes goes with an unbounded stream (--follow); take --words or --epochs")
    if not endless and options.vocabulary_words != EmbeddingOptions.vocabulary_words:
        raise TrainingError(
            "--vocabulary-words goes with an unbounded stream (--follow); of other text all words are counted: "
            "leave it out"
        )
