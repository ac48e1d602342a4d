"""Rule 1b returns the same words as a pipeline of `tr` and `sed`, and its hashes equal fastText's hashes."""

import re
import subprocess
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus.stream.stream_settings import StreamSettings
from corpus.stream.tokenisers import words_of_lines
from corpus.text import words
from corpus.tokens import char_ngrams, fold, is_token, ngram_buckets, token_hash, tokens

TABLE = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text())
SED = ("s/<br \\/>/ /g", "s/['.,()!?]/ & /g", "s/[;:]/ /g")
ASCII = ["a", "Z", "9", "&amp;", "'", '"', '""', ".", ",", "(", ")", "!", "?", ";", ":", "-", "...", "café"]
BREAKS = ["<br />", "<BR />", '<b"r />', "<br", "<br ", "<br  />", "<br\t/>", "/>", "<", "<<br />", "<br />>", "<br/>"]
SPACES = " \t\v\r\0\x7f\x85\xa0\u2003\u2019\u00c9\u0130\u212a\U0001f600"
PIECES = st.sampled_from([*ASCII, *BREAKS, *SPACES])
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=30)


def by_programs(texts: list[str]) -> list[list[str]]:
    """Return the words of texts without newlines by `tr` and `sed`, split at fastText's white space."""
    written = b"".join(text.encode() + b"\n" for text in texts)
    for command in (["tr", "A-Z", "a-z"], ["tr", "-d", '"'], ["sed", *(each for rule in SED for each in ("-e", rule))]):
        written = subprocess.run(command, input=written, capture_output=True, check=True, env={"LC_ALL": "C"}).stdout
    lines = written.decode().split("\n")[:-1]
    return [[word for word in re.split("[ \t\v\f\r\0]+", line) if word] for line in lines]


@settings(max_examples=10, derandomize=True)
@given(st.lists(TEXTS.map(lambda text: text.replace("\n", " ")), max_size=60))
@example(['It\'s "5.5" <br /><br />GOOD; caf\u00c9? (a<b"r />b)<<br />> <br\t/>'])
def test_words_are_those_of_tr_and_sed(texts) -> None:
    assert [tokens(text) for text in texts] == by_programs([fold(text) for text in texts])


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


@given(TEXTS)
@example("<br\t/>")
def test_a_word_of_a_text_is_a_word_by_itself(text) -> None:
    assert all(map(is_token, tokens(text)))


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


@pytest.mark.parametrize(("least", "most"), [(1, 3), (2, 2), (3, 6)])
def test_fasttext_itself_has_these_character_ngrams(tmp_path, least, most) -> None:
    fasttext = pytest.importorskip("fasttext", reason="requirements-bench.txt is not installed")
    text, buckets = "a caf\u00e9 <b> in the \u00c9t\u00e9 \U0001f600\U0001f600! aaaa \u65e5\u672c\u8a9e", 997
    file = tmp_path / "texts"
    file.write_text(f"__label__a {text}\n__label__b other words\n" * 20, "utf-8")
    sizes = {"dim": 8, "wordNgrams": 3, "bucket": buckets, "minn": least, "maxn": most}
    model = fasttext.train_supervised(str(file), **sizes, minCount=1, thread=1, verbose=0)
    words, lengths, known = text.split(), range(least, most + 1), len(model.get_words())
    rows = []
    for word in words:
        own, ngrams = model.get_word_id(word), char_ngrams(word, lengths)
        found = [own, *(known + token_hash(ngram.encode()) % buckets for ngram in ngrams)]
        subwords, places = model.get_subwords(word)
        assert (subwords, places.tolist()) == ([word, *ngrams], found)
        rows += found
    words.append("</s>")  # fastText adds this word to each line, without its character n-grams
    rows.append(model.get_word_id("</s>"))
    rows += [known + bucket for bucket in ngram_buckets([token_hash(word.encode()) for word in words], 3, buckets)]
    assert model.get_sentence_vector(text) == pytest.approx(np.mean(model.get_input_matrix()[rows], axis=0), abs=1e-6)
