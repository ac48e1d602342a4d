"""The options of a model of words: what it learns from a text, and how its vectors are judged."""

from dataclasses import dataclass, field
from typing import ClassVar

from trainer.options import ABOVE_0, AT_LEAST_0, AT_LEAST_1, Section, from_1_to, option, option_metadata


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions(Section):
    """Which words of a text are learnt with which."""

    title: ClassVar[str] = "vectors of words"

    window: int = option(
        "skipgram: the most words to each side that a word is learnt with; each time it is so many or fewer, by chance",
        default=5,
        must=from_1_to(1000),
    )
    negatives: int = option(
        "skipgram: words drawn by chance for each pair of words; those of some words that stand together are the same",
        default=5,
        must=from_1_to(1000),
    )
    subsample: float = option(
        "skipgram: words that are more frequent than this share of the text are left out by chance, the more frequent "
        "the more often; 0: none",
        default=1e-3,
        must=AT_LEAST_0,
    )
    min_count: int = option("skipgram: words that occur less often have no vector", default=5, must=from_1_to(1 << 40))
    noise_power: float = option(
        "skipgram: words are drawn in proportion to this power of their count", default=0.75, must=ABOVE_0
    )
    words: int | None = option(
        "skipgram: stop after so many running words of text (default: after --epochs, and on text that keeps coming "
        "when it is stopped)",
        default=None,
        must=AT_LEAST_1,
    )
    minutes: float | None = option(
        "skipgram, on text that keeps coming: stop after so many minutes", default=None, must=ABOVE_0
    )
    vocabulary_words: int = option(
        "skipgram, on text that keeps coming: make the vocabulary of its first words, so many",
        default=1_000_000,
        must=AT_LEAST_1,
    )
    similarity: tuple[str, ...] = field(
        default=(),
        metadata=option_metadata(
            "skipgram: sets of pairs of words with people's scores, by which the vectors are judged after each epoch",
            metavar="FILE",
            several=True,
        ),
    )
    pip: bool = option(
        "skipgram, on text that has an end: judge the vectors by their PIP loss, too: how far their inner products are "
        "from the shifted positive mutual information of the text's words",
        default=False,
    )
    analogy: tuple[str, ...] = field(
        default=(),
        metadata=option_metadata(
            "skipgram: sets of analogies, by which the vectors are judged at the end", metavar="FILE", several=True
        ),
    )
