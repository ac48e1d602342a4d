"""Options of linear.py."""

from dataclasses import dataclass

from trainer.classification.options import BUCKETS, NGRAMS, ClassifierOptions
from trainer.options.section import option


@dataclass(frozen=True, kw_only=True)
class LinearOptions(ClassifierOptions):
    ngrams: int = option(default=3, **NGRAMS)
    buckets: int | None = option(**BUCKETS)
