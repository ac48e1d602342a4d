"""Files of vectors: those of the word2vec program, and errors for damaged ones."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from trainer.embeddings.vectors import WordVectors, open_vectors, read_vectors, vectors_size, write_binary, write_text

WORDS = st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), min_size=1, max_size=6, unique=True)
_SIZES = st.floats(2.0**-99, 2.0**19, width=32)
NUMBERS = st.just(0.0) | _SIZES | _SIZES.map(lambda each: -each)
WRITERS = [write_text, write_binary]


@pytest.mark.parametrize(
    ("file", "address"), [("v.bin", "v.bin"), ("m/vectors.bin", "m"), ("o/model/vectors.txt", "o")]
)
def test_an_address_is_a_file_a_model_folder_or_a_run(tmp_path: Path, file: str, address: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    write_binary(str(tmp_path / file), WordVectors(["a"], np.ones((1, 2), np.float32)))
    assert open_vectors(str(tmp_path / address)).words == ["a"]


@given(words=WORDS, size=st.integers(1, 5), data=st.data())
@pytest.mark.parametrize("write", WRITERS)
def test_vectors_survive_a_round_trip_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, write, words: list[str], size: int, data: st.DataObject
) -> None:
    numbers = data.draw(st.lists(NUMBERS, min_size=len(words) * size, max_size=len(words) * size))
    matrix = np.pad(np.array(numbers, np.float32).reshape(len(words), size), ((0, 0), (0, 1)))
    path = tmp_path_factory.getbasetemp() / "vectors"
    write(str(path), WordVectors(words, matrix))
    found = read_vectors(str(path))
    assert found.words == words
    assert found.matrix.tolist() == matrix.tolist()


def test_newlines_between_words_of_a_binary_file_are_optional(tmp_path: Path) -> None:
    vectors = np.arange(6, dtype="<f4").reshape(2, 3)
    for between in (b"", b"\n"):
        path = tmp_path / "vectors.bin"
        path.write_bytes(b"2 3\na " + vectors[0].tobytes() + between + b"b " + vectors[1].tobytes())
        found = read_vectors(str(path))
        assert (found.words, found.matrix.tolist()) == (["a", "b"], vectors.tolist())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "contains no vectors"),
        (b"the 0.1\n", "contains no vectors"),
        (b"the quick fox\n", "contains no vectors"),
        (b"the 1 2\nof 1 2 3\n", "line 2: the line must have a word and 2 numbers"),
        (b"0 3\n", "contains no vectors"),
        (b"9999999999 300\nthe ", "is too short"),
        (b"2 2\na 1 2\nb 1 x\n", "line 3: the line must have a word and 2 numbers"),
        (b"2 2\na 1 2\nb 1\n", "line 3: the line must have a word and 2 numbers"),
        (b"2 2\na 1 2\n\n", "is too short"),
        (b"2 2\na -1 2\n\n", "ends after word 1 of 2"),
        (b"2 2\na 1 2\nb 3 4 5\n", "line 3: the line must have a word and 2 numbers"),
        (b"1 2\na nan 2\n", r"no usable vectors: 1 word \(a number is not finite\)"),
        (b"2 1\na \x00\x01\x02\xff\nb \x00\x01", "ends in word 2 of 2"),
    ],
)
def test_an_invalid_or_damaged_file_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        read_vectors(str(path))


A, B, C = (np.array(each, "<f4").tobytes() for each in ([1, 2], [3, 4], [np.nan, 1]))


@pytest.mark.parametrize(
    ("content", "words", "note"),
    [
        (b"3 2\na 1 2\n\xe4\xb8 3 4\nb 3 4\n", ["a", "b"], "left out 1 word (not UTF-8)"),
        (b"3 2\na 1 2\na 3 4\nb 3 4\n", ["a", "b"], "left out 1 word (repeated)"),
        (b"3 2\na 1 2\nc nan 4\nb 3 4\n", ["a", "b"], "left out 1 word (a number is not finite)"),
        (b"1 2\na 1 2\nb 3 4\n", ["a", "b"], "the first line states 1 word, but 2 were read"),
        (b"a 1 2\n. b 3 4\n", ["a", ". b"], ""),
        (b"3 2\na " + A + b"\xe4\xb8 " + B + b"b " + B, ["a", "b"], "left out 1 word (not UTF-8)"),
        (b"3 2\na " + A + b"c " + C + b"b " + B, ["a", "b"], "left out 1 word (a number is not finite)"),
        (b"1 2\na " + A + b"b " + B, ["a"], "ignored 10 bytes after the 1 word that the first line states"),
    ],
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_an_unusable_word_is_skipped_and_noted(
    tmp_path: Path, content: bytes, words: list[str], note: str, ending: str
) -> None:
    path = tmp_path / f"vectors.vec{ending}"
    path.write_bytes(gzip.compress(content) if ending else content)
    found = read_vectors(str(path))
    assert (found.words, found.matrix.tolist()) == (words, [[1, 2], [3, 4]][: len(words)])
    assert found.note == (f"{path}: {note}" if note else "")
    assert vectors_size(str(path)) == 2


def test_more_words_than_expected_are_read_and_a_damaged_archive_is_one_sentence(tmp_path: Path) -> None:
    path, packed = tmp_path / "glove.txt", tmp_path / "glove.txt.gz"
    path.write_text("".join(f"w{each} {each} 1\n" for each in range(9000)))
    found = read_vectors(str(path))
    assert (found.words[-1], found.matrix.shape, found.matrix[-1].tolist()) == ("w8999", (9000, 2), [8999, 1])
    packed.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with pytest.raises(DataError, match="the compressed data end too early; copy the file again"):
        read_vectors(str(packed))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("new york 0.1 -2 3e-05\nthe 1 2 3\n", ["new york", "the"]),
        ("the\t1\t2\na\t1\t-3.5\n", ["the", "a"]),
        ("2 2\nthe 1  2\na b 3 4 \n", ["the", "a b"]),
    ],
)
def test_words_may_contain_spaces_and_any_white_space_separates_numbers(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    (tmp_path / "v.txt").write_text(text)
    assert read_vectors(str(tmp_path / "v.txt")).words == words


def test_the_nearest_words_come_first_and_case_is_a_fallback() -> None:
    matrix = np.array([[1, 0], [0, 1], [2, 1], [0, 0]], np.float32)
    vectors = WordVectors(["a", "b", "c", "zero"], matrix)
    assert [word for word, _ in vectors.nearest("A", 9)] == ["c", "b", "zero"]
    assert vectors.nearest("a", 1) == [("c", pytest.approx(2 / 5**0.5))]
    with pytest.raises(KeyError):
        vectors.nearest("unknown", 1)


_HEADED = b"good 1.5 0.2 0.1\nbad 0.1 1.1 0.2\nking 0.3 0.2 1.7\n"


@pytest.mark.parametrize("content", [b"3 3\n" + _HEADED.replace(b".", b","), b"3 2\n" + _HEADED])
def test_text_with_other_numbers_than_its_first_line_says_is_not_read_as_binary(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "v.vec").write_bytes(content)
    with pytest.raises(DataError, match="line 2: the line must have a word and"):
        read_vectors(str(tmp_path / "v.vec"))


@pytest.mark.parametrize("kind", ["<f8", ">f4"])
def test_binary_of_other_numbers_than_little_endian_float32_is_refused(tmp_path: Path, kind: str) -> None:
    rows = [f"word{each} ".encode() + np.array([1.5, 0.2, -0.1 * each], kind).tobytes() + b"\n" for each in range(20)]
    (tmp_path / "v.bin").write_bytes(b"20 3\n" + b"".join(rows))
    with pytest.raises(DataError, match="little-endian float32"):
        read_vectors(str(tmp_path / "v.bin"))


@pytest.mark.parametrize("head", [b"", b"3 3\n"])
def test_a_byte_order_mark_is_not_part_of_the_first_line(tmp_path: Path, head: bytes) -> None:
    (tmp_path / "v.vec").write_bytes(b"\xef\xbb\xbf" + head + _HEADED)
    assert read_vectors(str(tmp_path / "v.vec")).words == ["good", "bad", "king"]
