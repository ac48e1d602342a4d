"""How good vectors are: by people's scores of pairs of words, and by analogies."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from trainer.embeddings.analogy import Question, analogies, read_questions, total
from trainer.embeddings.similarity import Pair, read_pairs, similarity
from trainer.embeddings.vectors import WordVectors


class Judges:
    """The sets by which a run's vectors are judged."""

    def __init__(self, similarity_files: Sequence[str], analogy_files: Sequence[str]) -> None:
        """Paths or s3://... Raises DataError for a file of another format."""
        self._pairs: dict[str, list[Pair]] = {_name(each): read_pairs(each) for each in similarity_files}
        self._questions: dict[str, list[Question]] = {_name(each): read_questions(each) for each in analogy_files}

    def quick_measures(self, vectors: WordVectors) -> dict[str, Any]:
        """Those that take little time: the rank correlation with each set of pairs, and their mean; null where too few
        of the words are known."""
        found = {name: similarity(vectors, pairs).spearman for name, pairs in self._pairs.items()}
        known = [each for each in found.values() if each is not None]
        mean = {"similarity": sum(known) / len(known) if known else None} if found else {}
        return {**mean, **{f"similarity_{name}": each for name, each in found.items()}}

    def all_measures(self, vectors: WordVectors) -> dict[str, Any]:
        """Also the shares of analogies that are answered, of those whose words are known."""
        found = self.quick_measures(vectors)
        for name, questions in self._questions.items():
            whole = total(analogies(vectors, questions))
            found |= {f"analogy_{name}_add": whole.add, f"analogy_{name}_mul": whole.mul}
        return found


def _name(address: str) -> str:
    return PurePosixPath(address).stem
