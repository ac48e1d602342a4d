"""Files of vectors are those of the word2vec program, and damaged ones are named."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from trainer.embeddings.vectors import WordVectors, open_vectors, read_vectors, write_binary, write_text

WORDS = st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), min_size=1, max_size=6, unique=True)
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)
WRITERS = [write_text, write_binary]


@pytest.mark.parametrize(
    ("file", "address"), [("v.bin", "v.bin"), ("m/vectors.bin", "m"), ("o/model/vectors.txt", "o")]
)
def test_an_address_is_that_of_a_file_or_of_a_model_or_of_a_run(tmp_path: Path, file: str, address: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    write_binary(str(tmp_path / file), WordVectors(["a"], np.ones((1, 2), np.float32)))
    assert open_vectors(str(tmp_path / address)).words == ["a"]


@given(words=WORDS, size=st.integers(1, 5), data=st.data())
@pytest.mark.parametrize("write", WRITERS)
def test_what_was_written_is_read_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, write, words: list[str], size: int, data: st.DataObject
) -> None:
    numbers = data.draw(st.lists(NUMBERS, min_size=len(words) * size, max_size=len(words) * size))
    matrix = np.array(numbers, np.float32).reshape(len(words), size)
    path = tmp_path_factory.getbasetemp() / "vectors"
    write(str(path), WordVectors(words, matrix))
    found = read_vectors(str(path))
    assert found.words == words
    assert found.matrix.tolist() == matrix.tolist()


def test_a_binary_file_may_have_newlines_between_words_or_none(tmp_path: Path) -> None:
    vectors = np.arange(6, dtype="<f4").reshape(2, 3)
    for between in (b"", b"\n"):
        path = tmp_path / "vectors.bin"
        path.write_bytes(b"2 3\na " + vectors[0].tobytes() + between + b"b " + vectors[1].tobytes())
        found = read_vectors(str(path))
        assert (found.words, found.matrix.tolist()) == (["a", "b"], vectors.tolist())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "holds no vectors"),
        (b"the 0.1 0.2\n", "holds no vectors"),
        (b"0 3\n", "holds no vectors"),
        (b"9999999999 300\nthe ", "is too short"),
        (b"2 2\na 1 2\nb 1 x\n", "line 3: there is no word with 2 numbers"),
        (b"2 2\na 1 2\nb 1\n", "line 3: there is no word with 2 numbers"),
        (b"2 2\na 1 2\na 3 4\n", "has a word twice"),
        (b"2 2\na 1 2\n\xff 3 4\n", "line 3: the word is not UTF-8"),
        (b"2 1\na \x00\x01\x02\xff\nb \x00\x01", "word 2 of 2: the file ends there"),
    ],
)
def test_another_or_a_damaged_file_is_a_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        read_vectors(str(path))


def test_the_nearest_words_come_first_and_a_word_is_found_in_lower_case_too() -> None:
    matrix = np.array([[1, 0], [0, 1], [2, 1], [0, 0]], np.float32)
    vectors = WordVectors(["a", "b", "c", "zero"], matrix)
    assert [word for word, _ in vectors.nearest("A", 9)] == ["c", "b", "zero"]
    assert vectors.nearest("a", 1) == [("c", pytest.approx(2 / 5**0.5))]
    with pytest.raises(KeyError):
        vectors.nearest("unknown", 1)
