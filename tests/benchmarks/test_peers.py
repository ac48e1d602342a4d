"""Generated reviews, and the equality of the peers' outcomes for them with Shoal's."""

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import generated
from benchmarks.generated import write_reviews
from benchmarks.peers.contract import cleaned_words, review
from benchmarks.peers.outcome import Outcome, outcome_of
from benchmarks.preprocess import CASES, run_case
from corpus.dataset_settings import Settings
from corpus.reading.formats import Format, LabelEncoder, MalformedLineError
from corpus.reading.parsing import line_parser
from corpus.text import words

PARSE = line_parser(Format(kind="json", text=("reviewText",), value="overall"), LabelEncoder(Settings()))
PIECES = st.sampled_from(
    ["don't", "'", "''", " ", "A", "\u2019", "\u212a", "\u0130", "&#39;", "&amp;", "caf\u00e9", "\x7f", "\n", "x1y"]
)


@given(st.lists(PIECES | st.text(max_size=4), max_size=12).map("".join))
def test_the_peers_clean_texts_as_the_corpus_does(text: str) -> None:
    assert [word.decode() for word in cleaned_words(text)] == words(text)


@given(
    st.sampled_from(['"t"', "null", "1", '"\\ud800"']),
    st.sampled_from(["1", "5.0", '"3"', '" 4.0 "', "6", "2.5", "true", "null", "NaN", "1e999", '"01"', "-0"]),
    st.sampled_from(["", "}", ', "overall": 2']),
)
def test_the_peers_find_the_same_lines_malformed(text: str, rating: str, end: str) -> None:
    line = f'{{"reviewText": {text}, "overall": {rating}{end}}}'.encode()
    try:
        expected = tuple(PARSE(line))[:2]
    except MalformedLineError:
        expected = None
    assert review(line) == expected


def outcome(case: str, folder: Path) -> Outcome:
    write_reviews(folder / "reviews.json", 1_000_000)
    usage, output = run_case(case, folder / "reviews.json", folder)
    assert usage.failed is None, (folder / f"{case}.log").read_text()
    return outcome_of(output)


@pytest.mark.soak
def test_all_cases_of_the_benchmark_have_equal_outcomes(tmp_path: Path) -> None:
    outcomes = {case: outcome(case, tmp_path) for case in CASES}
    assert len({str(each) for each in outcomes.values()}) == 1, outcomes
    assert outcomes["polars_"].counts["lines"] > 700


def is_sound(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line)["reviewText"], str)
    except (ValueError, KeyError, TypeError):
        return False


def test_file_is_a_prefix_of_longer_files_of_its_seed_with_few_malformed_lines(tmp_path, monkeypatch) -> None:
    for name, size in (("_SLOTS", 1 << 14), ("_WORDS", 1_000)):  # a small table of tokens
        monkeypatch.setattr(generated, name, size)
    for name, size, seed in (("short", 500_000, 1), ("long", 6_000_000, 1), ("other", 500_000, 2)):
        generated.write_reviews(tmp_path / name, size, seed)
    short, long = ((tmp_path / name).read_bytes() for name in ("short", "long"))
    assert long.startswith(short)
    assert (tmp_path / "other").read_bytes() != short
    assert 500_000 <= len(short) < 600_000
    assert short.endswith(b"}\n")
    sound = [is_sound(line) for line in long.splitlines()]
    assert 0 < sound.count(False) < 0.003 * len(sound)
