"""The rows of a part are the same in blocks of every size, for any number of repetitions of a text."""

from pathlib import Path
from tempfile import TemporaryFile

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.dataset import SPLITS, RowBlock
from corpus.dataset_settings import Settings
from jobs import encode
from jobs.choose import VocabularyChoice
from jobs.encode import EncodedPart, Encoder, VocabularyIds
from jobs.records import Arrays, pack_arrays, read_arrays, texts_url
from tests.jobs.piles import plan_in

WORDS = "lamp the shines bulb"
TEXTS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=5)
COPIES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(1, 9)), max_size=9)


def side(texts: list[list[int]], copies: list[tuple[int, int, int]]) -> Arrays:
    copies = sorted((text % len(texts), test, times) for text, test, times in copies)
    return {
        "lengths": np.array([len(text) for text in texts], np.uint32),
        "ids": np.array([number for text in texts for number in text], np.uint16),
        "text": np.array([text for text, _, _ in copies], np.uint32),
        "code": np.array([text % 2 for text, _, _ in copies], np.uint8),
        "test": np.array([test for _, test, _ in copies], np.uint8),
        "times": np.array([times for _, _, times in copies], np.int64),
        "words": np.frombuffer(WORDS.encode(), np.uint8),
    }


def blocks(texts: list[list[int]], copies: list[tuple[int, int, int]], settings: Settings) -> dict[str, list[RowBlock]]:
    with TemporaryFile() as file:
        file.writelines(pack_arrays(side(texts, copies)))
        file.seek(0)
        part = EncodedPart(*read_arrays(file, "ids"), VocabularyIds("shines lamp"), 1, settings)
        return {split: list(part.blocks(split)) for split in SPLITS}


def expected(texts: list[list[int]], copies: list[tuple[int, int, int]], split: int) -> list[tuple[list[int], int]]:
    found = sorted((text % len(texts), test, times) for text, test, times in copies)
    new_ids = [3, 1, 2, 1]
    return [
        ([new_ids[number] for number in texts[text]], text % 2)
        for text, test, times in found
        if test == split
        for _ in range(times)
    ]


@pytest.mark.parametrize("ragged", [True, False])
@given(TEXTS, COPIES, st.integers(1, 6), st.integers(1, 9))
def test_copies_of_texts_make_the_same_rows_in_blocks_of_any_size(
    ragged: bool, texts: list[list[int]], copies: list[tuple[int, int, int]], most_rows: int, most_tokens: int
) -> None:
    settings = Settings(ragged=True, labelled=True) if ragged else Settings(row_length=4, labelled=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "_BLOCK_ROWS", most_rows)
        patch.setattr(encode, "_BLOCK_TOKENS", most_tokens)
        found = blocks(texts, copies, settings)
    for number, split in enumerate(SPLITS):
        rows = []
        for block in found[split]:
            assert len(block.labels) <= most_rows
            assert not ragged or len(block.tokens) <= max(most_tokens, int(block.lengths.max()))
            for row, (length, label) in enumerate(zip(block.lengths.tolist(), block.labels.tolist(), strict=True)):
                tokens = block.part(row, row + 1).tokens.reshape(-1).tolist()
                assert not any(tokens[length:])
                rows.append((tokens[:length], label))
        assert rows == expected(texts, copies, number)


@pytest.mark.parametrize("there", [False, True])
def test_only_parts_on_s3_are_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    plan = plan_in(tmp_path, settings=Settings(row_length=4))
    monkeypatch.setattr(encode, "is_s3", {plan.parts: there}.__getitem__)
    Path(plan.texts).mkdir()
    Path(texts_url(plan.texts, "0000")).write_bytes(b"".join(pack_arrays(side([[0]], [(0, 0, 3)]))))
    choice = VocabularyChoice(positive_from=4, joined="lamp", counts=[3])
    assert Encoder(plan, choice).write("0000", lambda _: None).counts["tokens"] == 3
    (part,) = Path(plan.parts).iterdir()
    with h5py.File(part) as file:
        assert file["train/tokens"].compression == ("gzip" if there else None)
        assert file["train/tokens"][:].tolist() == [[2, 0, 0, 0]] * 3


def test_a_vocabulary_forgets_the_words_of_the_parts_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "_MAX_OTHER_WORDS", 1)
    ids = VocabularyIds("lamp bulb")
    for words, numbers in ((b"a b lamp", [1, 1, 2]), (b"bulb c", [3, 1]), (b"lamp a bulb", [2, 1, 3])):
        assert ids(words).tolist() == numbers
