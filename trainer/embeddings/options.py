"""Options of word embeddings: training pairs, negative samples, local steps of ranks, and evaluation."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

from common.checked_values import matching, within
from common.errors import TrainingError
from trainer.options.layer_options import EMBEDDING, HIDDEN, LAYERS, Depth, Width
from trainer.options.optimisation_options import OptimisationOptions
from trainer.options.section import Count, NonNegative, Positive, Section, option

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

    embedding: Width = option(default=100, **EMBEDDING)
    window: Annotated[int, within(1, 1000)] = option(
        "largest context window, a number of words; the window of each word is drawn at random from 1 to this number",
        default=5,
    )
    negatives: Annotated[int, within(1, 1000)] = option(
        "number of negative samples per pair of words; neighbouring words share negative samples",
        default=5,
    )
    subsample: NonNegative = option(
        "subsampling threshold: words with a higher share of the text are dropped at random, more frequent words more "
        "often; 0: no subsampling",
        default=1e-3,
    )
    min_count: Annotated[int, within(1, 1 << 40)] = option(
        "minimum number of occurrences of a word with an embedding", default=5
    )
    words: Count | None = option(
        "stop after training on this number of words of running text, at the end of a part or an epoch (default: stop "
        "after --epochs; on an unbounded stream: never stop)",
        default=None,
    )
    minutes: Positive | None = option(
        "on an unbounded stream: number of minutes until the run stops, counted from its wait for the first words",
        default=None,
    )
    vocabulary_words: Count = option(
        "on an unbounded stream: build the vocabulary from this number of words at the beginning of the stream, or "
        "from fewer if the readers pause or half of --minutes has passed",
        default=1_000_000,
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
    hidden: Width = option(default=128, **HIDDEN)
    layers: Depth = option(**LAYERS)
    character_embedding: Width = option(
        "dimensions of a character's embedding; --hidden and --layers set the size of the LSTM",
        default=128,
    )


_MODE = re.compile("sync|(?:average|async):([1-9][0-9]{0,5})")
_Mode = Annotated[str, matching("sync, or average:K or async:K with a number of steps, such as average:20", _MODE)]


@dataclass(frozen=True, kw_only=True)
class SkipGramOptimisation(OptimisationOptions):
    """Options of the optimisation of skip-gram. Its ranks can take steps of their own."""

    mode: _Mode = option(
        "how ranks learn together. sync: sum the gradients of all ranks at each step; average:K: each rank takes K "
        "steps on --global-batch or --rank-batch rows of its own, and then the ranks synchronise their vectors; "
        "async:K: each rank takes K steps, and then sends the changes to the ranks that own the words, without "
        "waiting for other ranks",
        default="sync",
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
