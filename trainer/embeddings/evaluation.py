"""How good word embeddings are: by people's scores of pairs of words, by analogies, and by the counts of their text."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from trainer.embeddings.analogy import Question, analogies, read_questions, total
from trainer.embeddings.cooccurrence import Pairs, cooccurrences
from trainer.embeddings.pip_loss import pip_loss, sppmi
from trainer.embeddings.sampling import Tokens
from trainer.embeddings.similarity import Pair, read_pairs, similarity
from trainer.embeddings.vectors import WordVectors
from trainer.options.embedding_options import PIP_COSINE, PIP_LOSS, PIP_MEAN_SQUARE, SIMILARITY

_PIP_WORDS, _PIP_ROWS = 30_000, 1 << 16
"""The PIP loss is of the most frequent words, and of the counts of the first rows, so that a large text does not fill
the memory."""


class WordEvaluation:
    """The sets on which a run's word embeddings are evaluated."""

    def __init__(
        self, similarity_files: Sequence[str], analogy_files: Sequence[str], reference: Pairs | None = None
    ) -> None:
        """Paths or s3://..., and what `pip_reference` gives, if the PIP loss is asked for. Raises DataError for a file
        of another format."""
        self._pairs: dict[str, list[Pair]] = {_name(each): read_pairs(each) for each in similarity_files}
        self._questions: dict[str, list[Question]] = {_name(each): read_questions(each) for each in analogy_files}
        self._reference = reference

    def quick_measures(self, vectors: WordVectors) -> dict[str, Any]:
        """Those that take little time: the PIP loss; the rank correlation with each set of pairs, and their mean, null
        where too few of the words are known."""
        measures: dict[str, Any] = {}
        if self._reference is not None:
            pip = pip_loss(vectors.matrix, self._reference)
            measures |= {PIP_LOSS: pip.loss, PIP_COSINE: pip.cosine, PIP_MEAN_SQUARE: pip.mean_square}
        by_set = {name: similarity(vectors, pairs).spearman for name, pairs in self._pairs.items()}
        known = [each for each in by_set.values() if each is not None]
        if by_set:
            measures[SIMILARITY] = sum(known) / len(known) if known else None
        return {**measures, **{f"{SIMILARITY}_{name}": each for name, each in by_set.items()}}

    def all_measures(self, vectors: WordVectors) -> dict[str, Any]:
        """Also the shares of analogies that are answered, of those whose words are known."""
        measures = self.quick_measures(vectors)
        for name, questions in self._questions.items():
            whole = total(analogies(vectors, questions))
            measures |= {f"analogy_{name}_add": whole.add, f"analogy_{name}_mul": whole.mul}
        return measures


def pip_reference(tokens: Tokens, *, words: int, window: int, negatives: int) -> Pairs:
    """What the vectors of `words` words are compared with for the PIP loss, by the counts in `tokens` (rows, n)."""
    counts = cooccurrences(tokens[:_PIP_ROWS], words=min(words, _PIP_WORDS), window=window)
    return sppmi(counts, negatives=negatives)


def _name(address: str) -> str:
    return PurePosixPath(address).stem
