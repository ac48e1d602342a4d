"""Files of vectors: those of the word2vec program, and errors for damaged ones."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import DataError
from trainer.embeddings.vectors import WordVectors, open_vectors, read_vectors, vectors_size, write_binary, write_text

WORDS = st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), min_size=1, max_size=6, unique=True)
_SIZES = st.floats(2.0**-99, 2.0**19, width=32)
A, B, C = (np.array(each, "<f4").tobytes() for each in ([1, 2], [3, 4], [np.nan, 1]))
NUMBERS = st.just(0.0) | _SIZES | _SIZES.map(lambda each: -each)


@pytest.mark.parametrize(("file", "address"), [("v", "v"), ("m/vectors.bin", "m"), ("o/model/vectors.txt", "o")])
def test_an_address_is_a_file_a_model_folder_or_a_run(tmp_path, file, address):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    write_binary(str(tmp_path / file), WordVectors(["a"], np.ones((1, 2), np.float32)))
    assert open_vectors(str(tmp_path / address)).words == ["a"]


@given(words=WORDS, size=st.integers(1, 5), data=st.data())
@pytest.mark.parametrize("write", [write_text, write_binary])
def test_vectors_survive_a_round_trip_bit_for_bit(tmp_path_factory, write, words, size, data):
    numbers = data.draw(st.lists(NUMBERS, min_size=len(words) * size, max_size=len(words) * size))
    matrix = np.pad(np.array(numbers, np.float32).reshape(len(words), size), ((0, 0), (0, 1)))
    path = tmp_path_factory.getbasetemp() / "vectors"
    write(str(path), WordVectors(words, matrix))
    found = read_vectors(str(path))
    assert found.words == words
    assert found.matrix.tolist() == matrix.tolist()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"the 0.1\n", b"the quick fox\n", b"0 3\n"),
        *(b"the 1 2\nof 1 2 3\n", b"2 2\na 1 2\nb 1 x\n", b"2 2\na 1 2\nb 1\n", b"2 2\na 1 2\nb 3 4 5\n"),
        *(b"9999999999 300\nthe ", b"2 2\na 1 2\n\n", b"2 2\na -1 2\n\n", b"2 1\na \x00\x01\x02\xff\nb \x00\x01"),
        *(b"1 2\na nan 2\n", b"1 2\na 1 2\nb 3 4\n", b"1 2\na " + A + b"b " + B),
        *(b"3 3\na 1,5 1 2\nb 1 1 2\nc 1 1 2\n", b"3 2\na 1.5 1 2\nb 1 1 2\nc 1 1 2\n"),  # no binary numbers
    ],
)
def test_an_invalid_or_damaged_file_is_one_sentence(tmp_path, content, messages):
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with messages.raises(DataError):
        read_vectors(str(path))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"3 2\na 1 2\n\xe4\xb8 3 4\nb 3 4\n", ["a", "b"]),
        (b"3 2\na 1 2\na 3 4\nb 3 4\n", ["a", "b"]),
        (b"3 2\na 1 2\nc nan 4\nb 3 4\n", ["a", "b"]),
        (b"a 1 2\n. b 3 4\n", ["a", ". b"]),
        (b"3 2\na " + A + b"\xe4\xb8 " + B + b"b " + B, ["a", "b"]),
        (b"3 2\na " + A + b"c " + C + b"b " + B, ["a", "b"]),
    ],
    ids=["UTF-8", "repeated", "nan", "no head", "binary UTF-8", "binary nan"],
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_an_unusable_word_is_skipped_and_noted(tmp_path, content, words, ending, messages):
    path = tmp_path / f"vectors.vec{ending}"
    path.write_bytes(gzip.compress(content) if ending else content)
    found = read_vectors(str(path))
    assert (found.words, found.matrix.tolist()) == (words, [[1, 2], [3, 4]][: len(words)])
    messages.check(found.note)
    assert vectors_size(str(path)) == 2


def test_more_words_than_expected_are_read_and_a_damaged_archive_is_one_sentence(tmp_path, messages):
    path, packed = tmp_path / "glove.txt", tmp_path / "glove.txt.gz"
    path.write_text("".join(f"w{each} {each} 1\n" for each in range(9000)))
    found = read_vectors(str(path))
    assert (found.words[-1], found.matrix.shape, found.matrix[-1].tolist()) == ("w8999", (9000, 2), [8999, 1])
    packed.write_bytes(gzip.compress(path.read_bytes())[:-20])
    with messages.raises(DataError):
        read_vectors(str(packed))


_HEADED = b"good 1.5 0.2 0.1\nbad 0.1 1.1 0.2\nking 0.3 0.2 1.7\n"
FORMS = {
    "words with spaces": (b"new york 0.1 -2 3e-05\nthe 1 2 3\n", ["new york", "the"]),
    "tabs": (b"the\t1\t2\na\t1\t-3.5\n", ["the", "a"]),
    "several spaces": (b"2 2\nthe 1  2\na b 3 4 \n", ["the", "a b"]),
    "a byte-order mark": (b"\xef\xbb\xbf" + _HEADED, ["good", "bad", "king"]),
    "a byte-order mark and a head": (b"\xef\xbb\xbf3 3\n" + _HEADED, ["good", "bad", "king"]),
    "binary": (b"2 2\na " + A + b"b " + B, ["a", "b"]),
    "binary with newlines": (b"2 2\na " + A + b"\nb " + B, ["a", "b"]),
}


@pytest.mark.parametrize(("content", "words"), FORMS.values(), ids=FORMS)
def test_words_are_read_from_all_forms_of_the_format(tmp_path, content, words):
    (tmp_path / "vectors").write_bytes(content)
    assert read_vectors(str(tmp_path / "vectors")).words == words


def test_the_nearest_words_come_first_and_case_is_a_fallback():
    matrix = np.array([[1, 0], [0, 1], [2, 1], [0, 0]], np.float32)
    vectors = WordVectors(["a", "b", "c", "zero"], matrix)
    assert [word for word, _ in vectors.nearest("A", 9)] == ["c", "b", "zero"]
    assert vectors.nearest("a", 1) == [("c", pytest.approx(2 / 5**0.5))]
    with pytest.raises(KeyError):
        vectors.nearest("unknown", 1)


@pytest.mark.parametrize("kind", ["<f8", ">f4"])
def test_binary_of_other_numbers_than_little_endian_float32_is_refused(tmp_path, kind):
    rows = [f"word{each} ".encode() + np.array([1.5, 0.2, -0.1 * each], kind).tobytes() + b"\n" for each in range(20)]
    (tmp_path / "v.bin").write_bytes(b"20 3\n" + b"".join(rows))
    with pytest.raises(DataError, match="little-endian float32"):
        read_vectors(str(tmp_path / "v.bin"))
