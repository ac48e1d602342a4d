"""Options of fasttext.py."""

from dataclasses import dataclass

from trainer.classification.options import BUCKETS, DROPOUT, EMBEDDINGS, NGRAMS, Buckets, ClassifierOptions, NGram
from trainer.options.layer_options import EMBEDDING, Width
from trainer.options.section import Share, option


@dataclass(frozen=True, kw_only=True)
class FastTextOptions(ClassifierOptions):
    embedding: Width | None = option(default=10, **EMBEDDING)
    embeddings: str | None = option(**EMBEDDINGS)
    ngrams: NGram = option(default=2, **NGRAMS)
    buckets: Buckets | None = option(**BUCKETS)
    dropout: Share = option(default=0.5, **DROPOUT)
