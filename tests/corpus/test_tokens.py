"""Rule 1b returns the same words as the contract, and its hashes equal fastText's hashes."""

from operator import itemgetter
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.stream.stream_settings import StreamSettings
from corpus.stream.tokenisers import words_of_lines
from corpus.text import words
from corpus.tokens import char_ngrams, is_token, ngram_buckets, token_hash, tokens
from tests import oracle

TABLE = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text())
BREAKS = ["<br />", "<BR />", '<b"r />', "<br", "<br ", "<br  />", "<br\t/>", "/>", "<", "<<br />", "<br />>", "<br/>"]
SPACES = " \t\v\r\0\x7f\x85\xa0\u2003\u2019\u00c9\u0130\u212a\U0001f600"
PIECES = st.sampled_from(["a", "Z", "9", "caf\u00e9", "&amp;", '"', "-", *"'.,()!?;:", *BREAKS, *SPACES])
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=30)


@given(TEXTS)
@example('It\'s "5.5" <br /><br />GOOD; caf\u00c7? (a<b"r />b)<<br />> <br\t/>')
def test_words_are_those_of_the_contract(text) -> None:
    assert tokens(text) == oracle.tokens(text)


@pytest.mark.parametrize("row", TABLE["words"], ids=itemgetter("text"))
def test_each_rule_accepts_its_own_words(row) -> None:
    rules = {"letters": words, "tokens": tokens}
    for name in row.keys() - {"text", *rules}:
        of_lines = words_of_lines(StreamSettings(sources=("/a",), tokeniser=name, lowercase=True))
        rules[name] = lambda text, of_lines=of_lines: of_lines([text])[:-1]
    assert {"text": row["text"], **{name: rule(row["text"]) for name, rule in rules.items()}} == row


@pytest.mark.parametrize("row", TABLE["character n-grams"], ids=itemgetter("word"))
def test_character_ngrams_include_the_frame_but_not_alone(row) -> None:
    assert char_ngrams(row["word"], range(*row["lengths"])) == row["ngrams"]


@pytest.mark.parametrize("row", TABLE["hashes"], ids=itemgetter("bytes"))
def test_the_hash_of_a_word_is_fnv_of_signed_bytes(row) -> None:
    assert token_hash(row["bytes"].encode("latin-1")) == row["hash"]


@given(PIECES | st.text(max_size=3))
@example("a<br />")
@example("..")
@example("a\n")
def test_cleaning_leaves_a_word_unchanged(text) -> None:
    assert is_token(text) == (tokens(text) == [text])


def test_buckets_are_of_signed_hashes_in_64_bits() -> None:
    a, b, c = 5, 2**32 - 2, 7  # the second hash is -2
    pair, later = (a * 116049371 - 2) % 2**64, ((2**64 - 2) * 116049371 + c) % 2**64
    triple = (pair * 116049371 + c) % 2**64
    assert ngram_buckets([a, b, c], 3, 1000) == [pair % 1000, triple % 1000, later % 1000]
    assert ngram_buckets([a, b, c], 2, 1000) == [pair % 1000, later % 1000]
    assert ngram_buckets([a, b, c], 1, 1000) == ngram_buckets([a], 3, 1000) == []
