"""Word analogies: which word is to `c` as `b` is to `a`?

A question is right where the word that is nearest by a rule, of all but the three that were given, is the expected one.
3CosAdd takes the largest cosine with b - a + c; 3CosMul (Levy and Goldberg 2014) the largest product of the
similarities with b and c, divided by that with a, where a similarity is a cosine brought to 0 to 1.

Files are Google's (a line `: name` before the questions of a section, four words a question), also without sections,
and MSR's: three words a question, and beside `NAME.questions` a file `NAME.answers` with the name of the relation and
the fourth word.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from common.errors import DataError
from corpus.reading.storage import exists, open_lines
from trainer.embeddings.vectors import Matrix, WordVectors

_BLOCK_NUMBERS = 1 << 24
"""Similarities of questions with all words that are in memory at once."""
_TINY = 1e-3
_QUESTIONS, _ANSWERS = ".questions", ".answers"
_NO_SECTION = "questions"
_FORMAT = "give Google's format, four words a line, or MSR's, a file .questions with its .answers beside it"


class Question(NamedTuple):
    """`a` is to `b` as `c` is to `expected`."""

    section: str
    a: str
    b: str
    c: str
    expected: str


class AnalogyResult(NamedTuple):
    """What vectors reach on the questions of a section, or of all."""

    right_by_add: int
    right_by_mul: int
    known: int
    """Questions of which all four words are known."""
    questions: int

    @property
    def add(self) -> float | None:
        """The share of the known questions that 3CosAdd answers."""
        return self.right_by_add / self.known if self.known else None

    @property
    def mul(self) -> float | None:
        """The share of the known questions that 3CosMul answers."""
        return self.right_by_mul / self.known if self.known else None


def read_questions(address: str) -> list[Question]:
    """The questions of a file, a path or s3://... Raises DataError for one of another format, with the line."""
    answers = address.removesuffix(_QUESTIONS) + _ANSWERS
    of_msr = address.endswith(_QUESTIONS) and exists(answers)
    found = list(_msr(address, answers) if of_msr else _google(address))
    if not found:
        raise DataError(f"{address} has no question; {_FORMAT}")
    return found


def analogies(
    vectors: WordVectors, questions: Sequence[Question], report: Callable[[int], None] = lambda _: None
) -> Mapping[str, AnalogyResult]:
    """What the vectors reach, by section. `report` gets the number of questions done."""
    names = list(dict.fromkeys(question.section for question in questions))
    sections = {name: number for number, name in enumerate(names)}
    rows = [[sections[each.section], *map(vectors.find, each[1:])] for each in questions]
    known = np.array([row for row in rows if None not in row], dtype=np.int64).reshape(-1, 5)
    asked = np.bincount([sections[each.section] for each in questions], minlength=len(names))
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
        name: AnalogyResult(*map(int, (right[0, number], right[1, number], of_known[number], asked[number])))
        for number, name in enumerate(names)
    }


def total(results: Mapping[str, AnalogyResult]) -> AnalogyResult:
    """The sum over all sections."""
    return AnalogyResult(*(sum(each) for each in zip(*results.values(), strict=True)))


def _answers(unit: Matrix, given: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """(n,): the answers to questions `given` (n, 3: a, b, c), by 3CosAdd and by 3CosMul."""
    a, b, c = (unit[given[:, each]] @ unit.T for each in range(3))  # cosines with all words, (n, words)
    places = np.arange(len(given))[:, None]
    by_add = b - a + c
    by_add[places, given] = -np.inf
    yield by_add.argmax(axis=1)
    by_mul = (1 + b) * (1 + c) / (1 + a + _TINY)
    by_mul[places, given] = -np.inf
    yield by_mul.argmax(axis=1)


def _google(address: str) -> Iterator[Question]:
    section = _NO_SECTION
    for number, line in enumerate(open_lines(address), 1):
        words = _words(line, address, number)
        if words[:1] == [":"]:
            section = " ".join(words[1:])
        elif words and len(words) != 4:
            raise DataError(f"{address}, line {number}: it has {len(words)} words; {_FORMAT}")
        elif words:
            yield Question(section, *words)


def _msr(address: str, answers: str) -> Iterator[Question]:
    lines = [_words(line, address, number) for number, line in enumerate(open_lines(address), 1)]
    expected = [_words(line, answers, number) for number, line in enumerate(open_lines(answers), 1)]
    if len(lines) != len(expected):
        raise DataError(
            f"{address} has {len(lines):,} lines, and {answers} has {len(expected):,}; give those of one set"
        )
    for number, (words, answer) in enumerate(zip(lines, expected, strict=True), 1):
        if len(words) != 3 or len(answer) != 2:
            raise DataError(
                f"{address}, line {number}: there are not three words, or in {answers} not a relation and a word; "
                f"{_FORMAT}"
            )
        yield Question(answer[0], words[0], words[1], words[2], answer[1])


def _words(line: bytes, address: str, number: int) -> list[str]:
    try:
        return line.decode().split()
    except UnicodeDecodeError:
        raise DataError(f"{address}, line {number}: it is not UTF-8") from None
