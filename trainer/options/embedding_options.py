"""The options of a model of words: what it learns from a text, and how its vectors are judged."""

from dataclasses import dataclass, field
from typing import ClassVar

from common.errors import TrainingError
from trainer.options.section import ABOVE_0, AT_LEAST_0, AT_LEAST_1, Section, from_1_to, option, option_metadata

PIP_LOSS, PIP_MEAN_SQUARE, PIP_COSINE, SIMILARITY = "pip_loss", "pip_mean_square", "pip_cosine", "similarity"
WORD_MEASURES = (PIP_LOSS, PIP_COSINE, PIP_MEAN_SQUARE, SIMILARITY)
"""The names of measures by which vectors are judged after each epoch; beside the last one there is that of each set."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions(Section):
    """Which words of a text are learnt with which."""

    title: ClassVar[str] = "word embeddings (skipgram, char-lstm)"

    window: int = option(
        "the most words to each side that a word is learnt with; each time it is so many or fewer, by chance",
        default=5,
        must=from_1_to(1000),
    )
    negatives: int = option(
        "words drawn by chance for each pair of words; those of some words that stand together are the same",
        default=5,
        must=from_1_to(1000),
    )
    subsample: float = option(
        "words that are more frequent than this share of the text are left out by chance, the more frequent "
        "the more often; 0: none",
        default=1e-3,
        must=AT_LEAST_0,
    )
    min_count: int = option("words that occur less often have no vector", default=5, must=from_1_to(1 << 40))
    noise_power: float = option(
        "words are drawn in proportion to this power of their count", default=0.75, must=ABOVE_0
    )
    words: int | None = option(
        "stop after so many running words of text, at the end of a part or an epoch (default: after --epochs, and on "
        "text that keeps coming when it is stopped)",
        default=None,
        must=AT_LEAST_1,
    )
    minutes: float | None = option(
        "on text that keeps coming: stop so many minutes after the run has begun to wait for its first words",
        default=None,
        must=ABOVE_0,
    )
    vocabulary_words: int = option(
        "on text that keeps coming: make the vocabulary of its first words, so many, or as many as readers read ahead, "
        "or as have come in half of --minutes",
        default=1_000_000,
        must=AT_LEAST_1,
    )
    character_embedding: int = option(
        "char-lstm: dimensions of a character's vector; --hidden and --layers are those of its LSTM",
        default=128,
        must=from_1_to(8192),
    )
    similarity: tuple[str, ...] = field(
        default=(),
        metadata=option_metadata(
            "sets of pairs of words with people's scores, by which the vectors are judged after each epoch",
            metavar="FILE",
            several=True,
        ),
    )
    pip: bool = option(
        "on text that has an end: judge the vectors by their PIP loss, too: how far their inner products are "
        "from the shifted positive mutual information of the text's words",
        default=False,
    )
    analogy: tuple[str, ...] = field(
        default=(),
        metadata=option_metadata(
            "sets of analogies, by which the vectors are judged at the end, and on text that keeps coming "
            "meanwhile, too",
            metavar="FILE",
            several=True,
        ),
    )


def require_text_of_kind(options: EmbeddingOptions, *, endless: bool) -> None:
    """Raise TrainingError for an option that goes with text that has an end, or with `endless` text, alone."""
    if endless and options.pip:
        raise TrainingError("--pip goes with a text that has an end, by whose counts vectors are judged; leave it out")
    if not endless and options.minutes is not None:
        raise TrainingError("--minutes goes with text that keeps coming (--follow); take --words or --epochs")
    if not endless and options.vocabulary_words != EmbeddingOptions.vocabulary_words:
        raise TrainingError(
            "--vocabulary-words goes with text that keeps coming (--follow); of other text all words are counted: "
            "leave it out"
        )
