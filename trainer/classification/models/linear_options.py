"""Options of linear.py."""

from dataclasses import dataclass

from trainer.classification.options import BUCKETS, NGRAMS, Buckets, ClassifierOptions, NGram
from trainer.options.section import option


@dataclass(frozen=True, kw_only=True)
class LinearOptions(ClassifierOptions):
    ngrams: NGram = option(default=3, **NGRAMS)
    buckets: Buckets | None = option(**BUCKETS)
