"""The candidates for the vocabulary are the most frequent words, in order, for any number of buckets."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.dataset_settings import Settings
from jobs.job_settings import settings_argument
from jobs.records import block_of
from jobs.vocabulary import CountWords

WORDS = st.text("abc", min_size=1, max_size=4)
BLOCKS = st.lists(st.tuples(st.integers(0, 3), st.dictionaries(WORDS, st.integers(1, 5), min_size=1)), max_size=8)


def packed(counts: dict[str, int]) -> bytes:
    words, numbers = np.frombuffer(" ".join(counts).encode(), np.uint8), np.array(list(counts.values()), np.uint32)
    return block_of({"words": words, "counts": numbers})


@settings(max_examples=50)
@given(BLOCKS, st.integers(1, 12))
def test_a_reducer_keeps_the_most_frequent_words_of_all_its_buckets(blocks, size: int) -> None:
    job = CountWords([settings_argument(Settings(vocabulary_size=size))])
    job.reducer_init()
    total: Counter[bytes] = Counter()
    for bucket in range(4):
        found = [
            {word + "wxyz"[bucket]: count for word, count in counts.items()} for of, counts in blocks if of == bucket
        ]
        for counts in found:
            total.update({word.encode(): count for word, count in counts.items()})
        assert not list(job.reducer(b"w%04x" % bucket, map(packed, found)))
    kept = [(word, int(count)) for word, count in job.reducer_final()]
    assert kept == sorted(total.items(), key=lambda item: (-item[1], item[0]))[:size]


def test_bytes_that_were_read_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.job._REPORT_BYTES", 100)
    job, reported = CountWords([]), []
    monkeypatch.setattr(job, "increment_counter", lambda *of: reported.append(of[-1]))
    for read in (60, 60, 101, 30):
        job.report_bytes(read)
    job.report_bytes(5, at_once=True)
    job.report_bytes(0, at_once=True)
    assert reported == [120, 101, 35]
