"""Word similarity and analogies: results compared with the definitions, and formats of their files."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from common.errors import DataError
from trainer.embeddings.evaluation import (
    AnalogyResult,
    WordEvaluation,
    analogies,
    read_pairs,
    read_questions,
    similarity,
    spearman,
    total,
)
from trainer.embeddings.vectors import WordVectors

VALUES = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=20)


@given(VALUES)
def test_the_rank_correlation_uses_mean_ranks(pairs):
    one, other = (list(each) for each in zip(*pairs, strict=True))
    found = spearman(np.array(one, float), np.array(other, float))
    if len({*one}) == 1 or len({*other}) == 1:
        assert found is None
        return
    assert found == pytest.approx(spearmanr(one, other).statistic)


def test_cosines_that_are_nan_have_no_rank_and_unknown_questions_no_share():
    assert spearman(np.array([np.nan, np.nan, 1.0]), np.array([1.0, 2.0, 3.0])) is None
    assert (AnalogyResult(0, 0, 0, 3).add, AnalogyResult(0, 0, 0, 3).mul) == (None, None)


def test_pairs_with_an_unknown_word_are_counted_and_left_out(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_bytes(b"# comment\na\tb\t3.0\r\na c 2\nA\td\t1\nb c 0.5\nx y 9\n\n")
    vectors = WordVectors(["a", "b", "c", "d"], np.array([[1, 0], [3, 1], [1, 1], [-1, 1]], np.float32))
    pairs = read_pairs(str(path))
    found = similarity(vectors, pairs)
    assert (found.known, found.pairs) == (4, 5)
    assert found.spearman == pytest.approx(0.4)
    assert similarity(vectors, pairs[:2]) == (None, 2, 2)


def test_the_mean_similarity_leaves_out_sets_with_too_few_known_pairs(tmp_path):
    sets = {"right": "a b 3\na c 2\na d 1\n", "wrong": "a b 1\na c 2\na d 3\n", "few": "a b 1\na c 2\nx y 9\n"}
    for name, pairs in sets.items():
        (tmp_path / f"{name}.txt").write_text(pairs)
    vectors = WordVectors(["a", "b", "c", "d"], np.array([[1, 0], [3, 1], [1, 1], [-1, 1]], np.float32))

    def measures(*names):
        return WordEvaluation([str(tmp_path / f"{name}.txt") for name in names], []).measures(vectors, analogy=False)

    found = measures("right", "few")
    assert found == {"similarity": pytest.approx(1), "similarity_right": pytest.approx(1), "similarity_few": None}
    assert measures("right", "wrong", "few")["similarity"] == pytest.approx(0)
    assert measures("few")["similarity"] is None
    assert measures() == {}


@pytest.mark.parametrize(
    ("read", "content"),
    [
        *((read_pairs, content) for content in (b"", b"a b\n", b"a b 1\na b one\n", b"a b nan\n")),
        *((read_questions, content) for content in (b": one\n", b"a b c\n", b"\xff")),
    ],
)
def test_an_invalid_list_is_one_sentence(tmp_path, read, content, messages):
    (tmp_path / "list").write_bytes(content)
    with messages.raises(DataError):
        read(str(tmp_path / "list"))


def plain_answer(vectors: WordVectors, a: str, b: str, c: str, *, by_product: bool) -> str:
    """Return the answer by the definition, word by word."""

    def cosine(one, other):
        return float(vectors.unit[vectors.numbers[one]] @ vectors.unit[vectors.numbers[other]])

    def value(word):
        if by_product:
            return (1 + cosine(word, b)) * (1 + cosine(word, c)) / (1 + cosine(word, a) + 1e-3)
        return cosine(word, b) - cosine(word, a) + cosine(word, c)

    return max((word for word in vectors.words if word not in (a, b, c)), key=value)


def test_answers_equal_the_definitions(tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.embeddings.evaluation._BLOCK_NUMBERS", 30)  # several blocks
    words = [f"w{number}" for number in range(12)]
    vectors = WordVectors(words, np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32))
    asked = list(itertools.permutations(words[:5], 3))[::7]
    for by_product in (False, True):
        answers = [plain_answer(vectors, *each, by_product=by_product) for each in asked]
        lines = [" ".join([*each, answer]) for each, answer in zip(asked, answers, strict=True)]
        path = tmp_path / "questions.txt"
        path.write_text(": some\n" + "\n".join(lines[:4]) + "\n: more\n" + "\n".join([*lines[4:], "w1 w2 w3 unknown"]))
        done: list[int] = []
        found = analogies(vectors, read_questions(str(path)), done.append)
        right = [each.right_by_mul if by_product else each.right_by_add for each in found.values()]
        assert right == [4, len(asked) - 4]
        assert [(each.known, each.questions) for each in found.values()] == [(4, 4), (len(asked) - 4, len(asked) - 3)]
        assert total(found).questions == len(asked) + 1
        assert done[-1] == len(asked) + 1


def test_questions_in_two_files_have_the_relations_of_the_answers(tmp_path, messages):
    (tmp_path / "set.questions").write_text("good better rough\nyear years law\n")
    (tmp_path / "set.answers").write_text("JJ_JJR rougher\nNN_NNS laws\n")
    found = read_questions(str(tmp_path / "set.questions"))
    assert [each.section for each in found] == ["JJ_JJR", "NN_NNS"]
    assert found[1][1:] == ("year", "years", "law", "laws")
    (tmp_path / "set.answers").write_text("JJ_JJR rougher\n")
    with messages.raises(DataError):
        read_questions(str(tmp_path / "set.questions"))
