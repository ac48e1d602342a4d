import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from shoal_balance.split import bounded, equal_finish_split, proportional_split, stratified_rows

speeds = st.lists(st.tuples(st.floats(0, 0.1), st.floats(1e-5, 0.1)), min_size=1, max_size=12)


@given(st.integers(0, 5000), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=16))
def test_proportional_splits_have_the_sum_and_err_by_less_than_one_row(total, weights):
    split = proportional_split(total, np.array(weights))
    assert split.sum() == total
    assert (np.abs(split - total * np.array(weights) / sum(weights)) < 1 + 1e-6).all()


def test_of_equal_remainders_the_lower_rank_gets_the_row():
    assert proportional_split(10, np.ones(4)).tolist() == [3, 3, 2, 2]


@given(st.integers(1, 5000), speeds)
def test_no_row_of_an_equal_finish_split_could_move_to_finish_sooner(total, ranks):
    fixed, per_row = np.array(ranks).T
    split = equal_finish_split(total, fixed, per_row)
    assert split.sum() == total
    assert (split >= 0).all()
    times = np.where(split > 0, fixed + per_row * split, 0.0)
    one_more = fixed + per_row * (split + 1)
    assert times.max() <= one_more.min() * (1 + 1e-9)


def test_a_rank_slower_with_one_row_than_the_others_with_all_gets_no_rows():
    assert equal_finish_split(200, np.array([0.0, 0.1, 0.3]), np.array([2.01, 0.02, 0.01])).tolist() == [0, 73, 127]
    assert equal_finish_split(100, np.array([0.0, 0.0, 9.0]), np.array([0.01, 0.01, 0.01])).tolist() == [50, 50, 0]


@example(lengths=[1, 300] * 20, weights=[1.0, 1.0])
@given(
    lengths=st.lists(st.integers(1, 300), min_size=1, max_size=200),
    weights=st.lists(st.floats(0, 5), min_size=1, max_size=6).filter(any),
)
def test_every_row_goes_to_one_rank_and_all_ranks_get_similar_lengths(lengths, weights):
    texts = np.array(lengths, dtype=np.uint16)
    split = proportional_split(len(texts), np.array(weights))
    positions = [stratified_rows(texts, split, rank) for rank in range(len(split))]
    assert [len(rows) for rows in positions] == split.tolist()
    assert sorted(np.concatenate(positions).tolist()) == list(range(len(texts)))
    for rows in positions:
        if len(rows):
            # the k-th row differs from its ideal position by less than half a row of this rank and of each other rank
            off = 0.5 / len(rows) + 0.5 * len(split) / len(texts)
            assert abs(texts[rows].mean() - texts.mean()) <= off * (int(texts.max()) - int(texts.min()))


@given(st.integers(1, 6), st.integers(0, 300), st.data())
def test_a_bounded_split_keeps_its_bounds_and_its_sum(ranks, total, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, total), min_size=ranks - 1, max_size=ranks - 1)))
    split = np.diff([0, *cuts, total])
    most = np.array(data.draw(st.lists(st.integers(1, 400), min_size=ranks, max_size=ranks)))
    if most.sum() < total:
        most += total
    found = bounded(split, most)
    assert found.sum() == total
    assert (found <= most).all()
    assert total < ranks or (found >= 1).all()
    if total >= ranks and (split >= 1).all() and (split <= most).all():
        assert found.tolist() == split.tolist()
