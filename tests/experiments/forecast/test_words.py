"""What several ranks do to the learning of word embeddings, as it is predicted."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.text import FIRST_WORD
from experiments.forecast.communication import Links
from experiments.forecast.words import (
    ROW_WORDS,
    WordRate,
    WordTask,
    alone,
    rate_by_catalogue,
    rate_together,
    step_bytes,
    touched_words,
    when_faster,
    words_per_second,
)
from infra import catalog
from trainer.balancing.speed import TimeModel

TASK = WordTask(size=100, vocabulary=20_000, rows=64, mode="sync")
RATE = WordRate(line=TimeModel(1e-4, 4e-4), message=3e-4, off=0.1, source="a test")
LINK = Links(nodes=2, ranks=2, gbits=1.0)

tasks = st.builds(
    WordTask,
    size=st.integers(1, 500),
    vocabulary=st.integers(10, 50_000),
    rows=st.integers(1, 1000),
    mode=st.sampled_from(["sync", "average:1", "average:50", "async:1", "async:50"]),
)


def test_a_step_touches_about_the_words_that_it_draws_from_zipfs_law() -> None:
    generator = np.random.default_rng(0)
    share = 1 / (np.arange(1, TASK.vocabulary + 1) + 2.7) ** 1.1
    drawn = generator.choice(TASK.vocabulary, p=share / share.sum(), size=round(TASK.rows * ROW_WORDS)) + FIRST_WORD
    without_subsampling = touched_words(replace(TASK, subsample=0.0), TASK.rows)
    assert without_subsampling[0] == pytest.approx(len(np.unique(drawn)), rel=0.05)


@given(tasks)
def test_more_rows_touch_more_words_but_never_more_than_there_are(task: WordTask) -> None:
    fewer, more = touched_words(task, task.rows), touched_words(task, 2 * task.rows)
    assert all(0 < one <= other <= task.vocabulary for one, other in zip(fewer, more, strict=True))
    assert fewer[0] <= fewer[1]  # contexts, and the drawn words besides


@given(tasks, st.integers(2, 16))
def test_larger_vectors_and_more_ranks_send_more(task: WordTask, ranks: int) -> None:
    sent = step_bytes(task, ranks)
    assert step_bytes(replace(task, size=task.size + 1), ranks) > sent
    assert step_bytes(task, ranks + 1) > sent


@given(tasks)
def test_one_rank_sends_nothing(task: WordTask) -> None:
    assert step_bytes(task, 1) == 0
    assert words_per_second(task, RATE, replace(LINK, nodes=1, ranks=1)) == alone(task, RATE)


@given(tasks, st.floats(0.1, 100))
def test_a_faster_link_never_makes_ranks_slower(task: WordTask, gbits: float) -> None:
    slow, fast = (words_per_second(task, RATE, replace(LINK, gbits=each)) for each in (gbits, 2 * gbits))
    assert slow <= fast


def test_steps_that_are_sent_one_by_one_are_slower_over_a_slow_link_than_one_rank_alone() -> None:
    assert words_per_second(TASK, RATE, LINK) < alone(TASK, RATE)
    for mode in ("average:100", "async:100"):
        assert words_per_second(replace(TASK, mode=mode), RATE, LINK) > alone(TASK, RATE)


@given(tasks, st.sampled_from([1, 2, 4]))
def test_from_what_is_named_on_all_ranks_are_faster_than_one(task: WordTask, times: int) -> None:
    def faster(changed: WordTask, link: Links = LINK) -> bool:
        return words_per_second(changed, RATE, link) > alone(changed, RATE)

    found, kind = when_faster(task, RATE, LINK), task.mode.partition(":")[0]
    if found.rows:
        assert faster(replace(task, rows=times * found.rows)) or times * found.rows > 1 << 14
        assert found.rows == 1 or not faster(replace(task, rows=found.rows // 2))
    if found.local_steps:
        assert faster(replace(task, mode=f"{kind}:{times * found.local_steps}"))
    if found.size:
        assert faster(replace(task, size=max(1, found.size // times)))
    if found.gbits:
        assert faster(task, replace(LINK, gbits=times * found.gbits))


def test_ranks_of_two_speeds_are_as_fast_as_both_together() -> None:
    slow, fast = TimeModel(1e-4, 4e-4), TimeModel(2e-4, 1e-4)
    both = rate_together([replace(RATE, line=line) for line in (slow, fast)])
    assert 2 / both.line.per_row == pytest.approx(1 / slow.per_row + 1 / fast.per_row)
    assert both.line.fixed == fast.fixed


def test_words_a_second_follow_from_a_step_s_own_time_and_what_is_sent() -> None:
    own, learnt = 1e-4 + 64 * 4e-4, 64 * ROW_WORDS
    assert alone(TASK, RATE) == pytest.approx(learnt / own)
    for mode, steps, messages, gigabytes in (
        ("sync", 1, 7, 2.7),
        ("average:20", 20, 7, 1.24),
        ("async:20", 20, 4, 0.3),
    ):
        task = replace(TASK, mode=mode)
        size = steps * step_bytes(task, 2)
        words = sum(touched_words(task, 64 * steps))
        assert size == pytest.approx(words * (0.5 * (2 * 400 + 16) if mode == "async:20" else 412))
        took = 1.1 * steps * own + size / 0.1e9 + messages * 3e-4 + 2 * size / (gigabytes * 1e9)
        assert words_per_second(task, RATE, LINK) == pytest.approx(2 * steps * learnt / took)


def test_a_gpu_that_nobody_measured_learns_as_blazingtext_s_by_its_tflops_and_the_size_of_vectors() -> None:
    gpu = catalog.find("g4dn.xlarge").gpu
    found = rate_by_catalogue(gpu, 200)
    assert ROW_WORDS / found.line.per_row == pytest.approx(43e6 / 8 * gpu.tflops / 15.7 / 2)
    assert "T4 not measured" in found.source
