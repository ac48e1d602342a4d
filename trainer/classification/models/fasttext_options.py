"""Options of fasttext.py."""

from dataclasses import dataclass

from trainer.classification.options import BUCKETS, DROPOUT, EMBEDDINGS, NGRAMS, ClassifierOptions
from trainer.options.layer_options import EMBEDDING
from trainer.options.section import option


@dataclass(frozen=True, kw_only=True)
class FastTextOptions(ClassifierOptions):
    embedding: int | None = option(default=10, **EMBEDDING)
    embeddings: str | None = option(**EMBEDDINGS)
    ngrams: int = option(default=2, **NGRAMS)
    buckets: int | None = option(**BUCKETS)
    dropout: float = option(default=0.5, **DROPOUT)
