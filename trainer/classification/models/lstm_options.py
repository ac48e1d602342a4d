"""Options of lstm.py."""

from dataclasses import dataclass
from typing import Annotated, Any

from common.checked_values import one_of, within
from corpus.text import FIRST_WORD
from trainer.classification.options import DROPOUT, EMBEDDINGS, ClassifierOptions
from trainer.options.layer_options import EMBEDDING, HIDDEN, LAYERS, Depth, Width
from trainer.options.section import Share, option

_MOST_WORDS = 2_000_000


@dataclass(frozen=True, kw_only=True)
class LSTMOptions(ClassifierOptions):
    embedding: Width | None = option(default=64, **EMBEDDING)
    embeddings: str | None = option(**EMBEDDINGS)
    vocabulary: Annotated[int, within(1, _MOST_WORDS)] = option(
        "number of words that have their own vector: the most frequent words of the dataset. All other words share "
        "the vector of unknown words. 2000000: every word has its own vector",
        default=_MOST_WORDS,
        internal=True,
        setting=True,
    )
    hidden: Width = option(default=32, **HIDDEN)
    layers: Depth = option(**LAYERS)
    pooling: Annotated[str, one_of(("mean+max+words", "last"))] = option(
        "components of a text's vector, joined with +. mean: mean of the states of its words; max: "
        "maximum of these states; words: mean of the word vectors. last: only the state after the last word",
        default="mean+max+words",
        internal=True,
        setting=True,
    )
    dropout: Share = option(default=0.3, **DROPOUT)
    embedding_dropout: Share = option(
        "share of dimensions to drop from a text's word vectors", default=0.5, internal=True, setting=True
    )
    word_dropout: Share = option(
        "share of words to drop from a text each time it is used; at least four words are kept",
        default=0.5,
        internal=True,
    )

    def model_settings(self, *, words: int, outputs: int) -> dict[str, Any]:
        settings = super().model_settings(words=words, outputs=outputs)
        if self.vocabulary == _MOST_WORDS or self.vocabulary + FIRST_WORD >= words:
            del settings["vocabulary"]
        return settings
