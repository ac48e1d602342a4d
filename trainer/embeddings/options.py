"""Options of word embeddings: training pairs, negative samples, local steps of ranks, and evaluation."""

import re
from dataclasses import dataclass
from typing import ClassVar

from common.errors import TrainingError
from common.json_values import Bound
from trainer.options.layer_options import EMBEDDING, HIDDEN, LAYERS
from trainer.options.optimisation_options import OptimisationOptions
from trainer.options.section import ABOVE_0, AT_LEAST_0, AT_LEAST_1, Section, from_1_to, option

PIP_LOSS, PIP_MEAN_SQUARE, PIP_COSINE, SIMILARITY = "pip_loss", "pip_mean_square", "pip_cosine", "similarity"
"""Names of the measures of embeddings after each epoch.

SIMILARITY is the mean over all similarity sets. For the measure of one set, the set's name is appended.
"""

ENDLESS = 1_000_000
"""Number of epochs of a run on an unbounded stream.

It is practically infinite, so that the run continues until it is stopped.
"""


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions(Section):
    """Options of every model of words: pairs, negative samples, the end of a run, and the evaluation of embeddings."""

    title: ClassVar[str] = "word embeddings"
    last: ClassVar[tuple[str, ...]] = ("similarity", "pip", "analogy")

    embedding: int = option(default=100, **EMBEDDING)
    window: int = option(
        "largest context window, a number of words; the window of each word is drawn at random from 1 to this number",
        default=5,
        must=from_1_to(1000),
    )
    negatives: int = option(
        "number of negative samples per pair of words; neighbouring words share negative samples",
        default=5,
        must=from_1_to(1000),
    )
    subsample: float = option(
        "subsampling threshold: words with a higher share of the text are dropped at random, more frequent words more "
        "often; 0: no subsampling",
        default=1e-3,
        must=AT_LEAST_0,
    )
    min_count: int = option(
        "minimum number of occurrences of a word with an embedding", default=5, must=from_1_to(1 << 40)
    )
    words: int | None = option(
        "stop after training on this number of words of running text, at the end of a part or an epoch (default: stop "
        "after --epochs; on an unbounded stream: never stop)",
        default=None,
        must=AT_LEAST_1,
    )
    minutes: float | None = option(
        "on an unbounded stream: number of minutes until the run stops, counted from its wait for the first words",
        default=None,
        must=ABOVE_0,
    )
    vocabulary_words: int = option(
        "on an unbounded stream: build the vocabulary from this number of words at the beginning of the stream, or "
        "from fewer if the readers pause or half of --minutes has passed",
        default=1_000_000,
        must=AT_LEAST_1,
    )
    similarity: tuple[str, ...] = option(
        "word similarity sets (pairs with human scores) for an evaluation after each epoch",
        default=(),
        metavar="FILE",
        several=True,
    )
    pip: bool = option(
        "on finite text: also measure the PIP loss, the distance between the inner products of the embeddings and "
        "the shifted positive pointwise mutual information of the words",
        default=False,
    )
    analogy: tuple[str, ...] = option(
        "analogy sets for an evaluation at the end; on an unbounded stream also during the run",
        default=(),
        metavar="FILE",
        several=True,
    )


@dataclass(frozen=True, kw_only=True)
class CharLSTMOptions(EmbeddingOptions):
    hidden: int = option(default=128, **HIDDEN)
    layers: int = option(**LAYERS)
    character_embedding: int = option(
        "dimensions of a character's embedding; --hidden and --layers set the size of the LSTM",
        default=128,
        must=from_1_to(8192),
    )


_MODE = re.compile("sync|(?:average|async):([1-9][0-9]{0,5})")


@dataclass(frozen=True, kw_only=True)
class SkipGramOptimisation(OptimisationOptions):
    """Options of the optimisation of skip-gram. Its ranks can take steps of their own."""

    mode: str = option(
        "how ranks learn together. sync: sum the gradients of all ranks at each step; average:K: each rank takes K "
        "steps on --global-batch or --rank-batch rows of its own, and then the ranks synchronise their vectors; "
        "async:K: each rank takes K steps, and then sends the changes to the ranks that own the words, without "
        "waiting for other ranks",
        default="sync",
        must=Bound(
            "sync, or average:K or async:K with a number of steps, such as average:20",
            lambda mode: bool(_MODE.fullmatch(mode)),
        ),
        metavar="MODE",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.local_steps and self.optimiser == "adam":
            raise TrainingError(
                f"--mode is {self.mode}, which cannot average Adam's moments across ranks; use --optimiser adagrad "
                "or sgd, or --mode sync"
            )

    @property
    def local_steps(self) -> int:
        match = _MODE.fullmatch(self.mode)
        return int(match[1] or 0) if match else 0

    @property
    def is_asynchronous(self) -> bool:
        return self.mode.startswith("async")


def require_text_of_kind(options: EmbeddingOptions, *, endless: bool) -> None:
    """Raise TrainingError if an option does not apply to this kind of text: an unbounded stream if `endless`, else
    finite text.
    """
    if endless and options.pip:
        raise TrainingError(
            "--pip needs finite text, because it compares the embeddings with the whole text; leave out --pip"
        )
    if not endless and options.minutes is not None:
        raise TrainingError("--minutes needs an unbounded stream (--follow); use --words or --epochs")
    if not endless and options.vocabulary_words != EmbeddingOptions.vocabulary_words:
        raise TrainingError(
            "--vocabulary-words needs an unbounded stream (--follow); on finite text, Shoal counts all words; leave "
            "out --vocabulary-words"
        )
