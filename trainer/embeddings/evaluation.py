"""Evaluation of word embeddings by word similarity, by analogies, and by the co-occurrence counts of their text.

Similarity is Spearman's rank correlation between cosines and human scores, over the pairs with two known
words. An analogy question "a is to b as c is to ?" is answered with the best word other than the three given words. For
3CosAdd, that is the word with the largest cosine with b - a + c. For 3CosMul (Levy and Goldberg 2014), it is the word
with the largest product of its similarities with b and c, divided by its similarity with a.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from common.errors import DataError
from corpus.reading.storage import exists, open_lines
from trainer.embeddings.options import PIP_COSINE, PIP_LOSS, PIP_MEAN_SQUARE, SIMILARITY
from trainer.embeddings.pip_loss import Pairs, cooccurrences, pip_loss, sppmi
from trainer.embeddings.sampling import Tokens
from trainer.embeddings.vectors import Matrix, WordVectors

_LEAST = 3
"""Minimum number of pairs: a rank correlation over fewer pairs is meaningless."""


class Pair(NamedTuple):
    """Two words, and a human score of their similarity."""

    one: str
    other: str
    score: float


class SimilarityResult(NamedTuple):
    """Word similarity of vectors on a set of pairs."""

    spearman: float | None
    """Rank correlation in [-1, 1]; None if too few pairs are known, or if all scores or all cosines are equal."""
    known: int
    """Number of pairs with vectors for both words."""
    pairs: int


def read_pairs(address: str) -> list[Pair]:
    """Read pairs with scores from a path or s3://...

    Raises DataError, with the number of the line, if the file has a different format.
    """
    pairs = []
    for number, words in _lines(address):
        if words[0].startswith("#"):
            continue
        try:
            one, other, score = words
            pairs.append(Pair(one, other, float(score)))
        except ValueError:
            raise DataError(
                f"{address}, line {number}: the line must have two words and a number; give a list of pairs with "
                "their scores"
            ) from None
        if not np.isfinite(pairs[-1].score):
            raise DataError(f"{address}, line {number}: the score {pairs[-1].score} is not finite")
    if not pairs:
        raise DataError(f"{address} contains no pair of words; give a list of pairs with their scores")
    return pairs


def words_of(pairs: list[Pair]) -> Iterator[str]:
    return (word for pair in pairs for word in (pair.one, pair.other))


def similarity(vectors: WordVectors, pairs: list[Pair]) -> SimilarityResult:
    """Return the rank correlation between the cosines of the vectors and the scores, over these pairs."""
    numbers = [(vectors.find(pair.one), vectors.find(pair.other), pair.score) for pair in pairs]
    known = [(one, other, score) for one, other, score in numbers if one is not None and other is not None]
    if len(known) < _LEAST:
        return SimilarityResult(None, len(known), len(pairs))
    ones, others, scores = map(np.array, zip(*known, strict=True))
    cosines = np.einsum("nd,nd->n", vectors.unit[ones], vectors.unit[others])
    return SimilarityResult(spearman(cosines, scores), len(known), len(pairs))


def spearman(one: npt.NDArray[np.floating], other: npt.NDArray[np.floating]) -> float | None:
    """Return Spearman's rank correlation of two arrays (n,). Equal values get their mean rank.

    Returns None if one of the arrays is constant or contains NaN.
    """
    if np.isnan(one).any() or np.isnan(other).any():
        return None
    ranks = np.stack([_ranks(one), _ranks(other)])
    away = ranks - ranks.mean(axis=1, keepdims=True)
    squares = (away**2).sum(axis=1)
    return float((away[0] * away[1]).sum() / np.sqrt(squares.prod())) if squares.all() else None


def _ranks(values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: npt.NDArray[np.float64] = np.cumsum(counts) - (counts - 1) / 2
    return means[places]


_BLOCK_NUMBERS = 1 << 24
"""Largest number of cosines, between questions and all words, that are in memory at once."""
_TINY = 1e-3
_QUESTIONS, _ANSWERS = ".questions", ".answers"
_NO_SECTION = "questions"
_FORMAT = (
    "use Google's format (four words per line) or MSR's (a .questions file and its .answers file in the same folder)"
)


class Question(NamedTuple):
    """Analogy question: `a` is to `b` as `c` is to `expected`."""

    section: str
    a: str
    b: str
    c: str
    expected: str


class AnalogyResult(NamedTuple):
    """Results of vectors on the analogy questions of one section, or of all sections."""

    right_by_add: int
    right_by_mul: int
    known: int
    """Number of questions with vectors for all four words."""
    questions: int

    @property
    def add(self) -> float | None:
        """Share of the known questions that 3CosAdd answers correctly."""
        return self.right_by_add / self.known if self.known else None

    @property
    def mul(self) -> float | None:
        """Share of the known questions that 3CosMul answers correctly."""
        return self.right_by_mul / self.known if self.known else None


def read_questions(address: str) -> list[Question]:
    """Read analogy questions from a path or s3://...

    Raises DataError, with the number of the line, if the file has a different format.
    """
    answers = address.removesuffix(_QUESTIONS) + _ANSWERS
    of_msr = address.endswith(_QUESTIONS) and exists(answers)
    questions = list(_read_msr(address, answers) if of_msr else _read_google(address))
    if not questions:
        raise DataError(f"{address} contains no question; {_FORMAT}")
    return questions


def analogies(
    vectors: WordVectors, questions: Sequence[Question], report: Callable[[int], None] = lambda _: None
) -> Mapping[str, AnalogyResult]:
    """Answer analogy questions, and return the results by section.

    `report` is called with the number of questions that are finished so far.
    """
    names = list(dict.fromkeys(question.section for question in questions))
    sections = {name: number for number, name in enumerate(names)}
    rows = [[sections[each.section], *map(vectors.find, each[1:])] for each in questions]
    known = np.array([row for row in rows if None not in row], dtype=np.int64).reshape(-1, 5)
    of_all = np.bincount([sections[each.section] for each in questions], minlength=len(names))
    of_known = np.bincount(known[:, 0], minlength=len(names))
    right = np.zeros((2, len(names)), dtype=np.int64)
    step = max(1, _BLOCK_NUMBERS // len(vectors.words))
    for begin in range(0, len(known), step):
        block = known[begin : begin + step]
        for way, answer in enumerate(_answers(vectors.unit, block[:, 1:4])):
            right[way] += np.bincount(block[answer == block[:, 4], 0], minlength=len(names))
        report(begin + len(block))
    report(len(rows))
    return {
        name: AnalogyResult(*map(int, (right[0, number], right[1, number], of_known[number], of_all[number])))
        for number, name in enumerate(names)
    }


def total(results: Mapping[str, AnalogyResult]) -> AnalogyResult:
    """Return the sum of the results of all sections."""
    return AnalogyResult(*(sum(each) for each in zip(*results.values(), strict=True)))


def _answers(unit: Matrix, questions: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the answers (n,) to the `questions` (n, 3), first by 3CosAdd and then by 3CosMul.

    A question is the row numbers of its words a, b and c in `unit`; an answer is the row number of a word.
    """
    a, b, c = (unit[questions[:, each]] @ unit.T for each in range(3))  # cosines with all words, each (n, words)
    places = np.arange(len(questions))[:, None]
    by_add = b - a + c
    by_add[places, questions] = -np.inf
    yield by_add.argmax(axis=1)
    by_mul = (1 + b) * (1 + c) / (1 + a + _TINY)
    by_mul[places, questions] = -np.inf
    yield by_mul.argmax(axis=1)


def _read_google(address: str) -> Iterator[Question]:
    section = _NO_SECTION
    for number, words in _lines(address):
        if words[0] == ":":
            section = " ".join(words[1:])
        elif len(words) != 4:
            raise DataError(f"{address}, line {number}: the line has {len(words)} words; {_FORMAT}")
        else:
            yield Question(section, *words)


def _read_msr(address: str, answers: str) -> Iterator[Question]:
    lines, expected = list(_lines(address)), list(_lines(answers))
    if len(lines) != len(expected):
        raise DataError(
            f"{address} has {len(lines):,} lines, but {answers} has {len(expected):,}; use two files of the same set"
        )
    for (number, words), (_, answer) in zip(lines, expected, strict=True):
        if len(words) != 3 or len(answer) != 2:
            raise DataError(
                f"{address}, line {number}: the line must have three words, and the same line of {answers} must have a "
                f"relation and a word; {_FORMAT}"
            )
        yield Question(answer[0], words[0], words[1], words[2], answer[1])


def _lines(address: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the words of each line that is not blank. Raises DataError for a line that is not UTF-8."""
    for number, line in enumerate(open_lines(address), 1):
        try:
            words = line.decode().split()
        except UnicodeDecodeError:
            raise DataError(f"{address}, line {number}: the line is not UTF-8") from None
        if words:
            yield number, words


_PIP_WORDS, _PIP_ROWS = 30_000, 1 << 16
"""Largest number of words, and largest number of text rows, in the PIP loss, so that the co-occurrence counts of a
large text fit into memory. The loss uses the most frequent words and the first rows."""


class WordEvaluation:
    """Evaluation of a run's word embeddings on word pairs and analogy questions, and by the PIP loss."""

    def __init__(
        self, similarity_files: Sequence[str], analogy_files: Sequence[str], reference: Pairs | None = None
    ) -> None:
        """Read the sets from paths or s3://... Raises DataError if a file has a different format.

        `reference`: a result of `pip_reference`, for the PIP loss; None: do not compute the PIP loss.
        """
        self._pairs: dict[str, list[Pair]] = {_name(each): read_pairs(each) for each in similarity_files}
        self._questions: dict[str, list[Question]] = {_name(each): read_questions(each) for each in analogy_files}
        self._reference = reference

    def measures(self, vectors: WordVectors, *, analogy: bool) -> dict[str, Any]:
        """Return the PIP loss, a rank correlation for each set of pairs, and the mean of these correlations.

        A correlation over too few known pairs has the value None. With `analogy`, which takes long, also return the
        shares of correct answers for each set of analogies.
        """
        measures: dict[str, Any] = {}
        if self._reference is not None:
            pip = pip_loss(vectors.matrix, self._reference)
            measures |= {PIP_LOSS: pip.loss, PIP_COSINE: pip.cosine, PIP_MEAN_SQUARE: pip.mean_square}
        by_set = {name: similarity(vectors, pairs).spearman for name, pairs in self._pairs.items()}
        known = [each for each in by_set.values() if each is not None]
        if by_set:
            measures[SIMILARITY] = sum(known) / len(known) if known else None
        measures |= {f"{SIMILARITY}_{name}": each for name, each in by_set.items()}
        for name, questions in self._questions.items() if analogy else ():
            whole = total(analogies(vectors, questions))
            measures |= {f"analogy_{name}_add": whole.add, f"analogy_{name}_mul": whole.mul}
        return measures


def pip_reference(tokens: Tokens, *, words: int, window: int, negatives: int) -> Pairs:
    """Return the reference of the PIP loss, from co-occurrence counts in `tokens` (rows, n). `words`: the vocabulary's
    number of words."""
    counts = cooccurrences(tokens[:_PIP_ROWS], words=min(words, _PIP_WORDS), window=window)
    return sppmi(counts, negatives=negatives)


def _name(address: str) -> str:
    return PurePosixPath(address).stem
