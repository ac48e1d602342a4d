import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shoal_balance.balancers import make_balancer
from shoal_balance.order import BatchOrder
from shoal_balance.split import stratified_rows

orders = st.builds(
    BatchOrder,
    rows=st.integers(1, 400),
    global_batch=st.integers(1, 90),
    seed=st.integers(0, 2**32),
    block_rows=st.integers(1, 60),
    window_blocks=st.integers(1, 9),
)


def epoch_of(order, epoch):
    return [row for step in range(order.steps) for row in order.batch(epoch, step).tolist()]


@settings(max_examples=200)
@given(
    order=orders,
    epoch=st.integers(0, 5),
    shares=st.lists(st.floats(0.01, 10), min_size=1, max_size=8),
    how=st.sampled_from(["steps", "epoch:0.3", "off", "fixed"]),
    times=st.integers(0, 2**32),
)
def test_any_shares_cover_every_row_exactly_once_an_epoch(order, epoch, shares, how, times):
    generator = np.random.default_rng(times)
    lengths = generator.integers(1, 20, order.rows).astype(np.uint16)
    named = ",".join(map(str, shares)) if how == "fixed" else how
    splitting = make_balancer(named, np.array(shares), every=3, steps_per_epoch=order.steps, total=order.size(0))
    seen = []
    for step in range(order.steps):
        rows = order.batch(epoch, step)
        split = splitting.split(len(rows))
        taken = [rows[stratified_rows(lengths[rows], split, rank)] for rank in range(len(shares))]
        assert [len(own) for own in taken] == split.tolist()
        assert sorted(np.concatenate(taken).tolist()) == sorted(rows.tolist())
        seen += np.concatenate(taken).tolist()
        splitting.observe(split, split / np.array(shares) * generator.uniform(0.5, 2.0, len(shares)))
    assert sorted(seen) == list(range(order.rows))


@given(orders)
def test_all_batches_except_the_last_are_full(order):
    sizes = [len(order.batch(0, step)) for step in range(order.steps)]
    assert set(sizes[:-1]) <= {order.global_batch}
    assert sizes[-1] == order.rows - order.global_batch * (order.steps - 1)


@given(orders, st.data())
def test_a_batch_does_not_depend_on_earlier_calls(order, data):
    step = data.draw(st.integers(0, order.steps - 1))
    in_turn = [order.batch(1, each) for each in range(order.steps)][step]
    order.batch(0, 0)
    assert np.array_equal(order.batch(1, step), in_turn)


def test_a_batch_within_a_window_is_a_read_only_view():
    order = BatchOrder(
        rows=1000, global_batch=100, seed=0, block_rows=10, window_blocks=50
    )  # 2 windows, of 5 batches each
    first, second = order.batch(0, 0), order.batch(0, 1)
    assert first.base is second.base is not None
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0


@given(orders)
def test_a_reader_needs_only_one_window_of_blocks_at_a_time(order):
    blocks = [row // order.block_rows for row in epoch_of(order, 0)]
    first = {block: blocks.index(block) for block in blocks}
    in_order = sorted(first, key=lambda block: first[block])
    window_rows = order.block_rows * order.window_blocks
    for start in range(0, len(blocks), window_rows):
        assert len(set(blocks[start : start + window_rows])) <= 2 * order.window_blocks
    assert sorted(in_order) == list(range(-(-order.rows // order.block_rows)))


def test_every_window_epoch_and_seed_has_its_own_permutation():
    """If windows shared a permutation, a batch would always have rows from the same positions of their blocks."""
    ways = set()
    for seed in range(3):
        order = BatchOrder(rows=8 * 64, global_batch=64, seed=seed, block_rows=64, window_blocks=1)
        for epoch in range(3):
            for step in range(order.steps):
                rows = order.batch(epoch, step)  # (64,): rows of one block
                ways.add(tuple((rows - rows.min()).tolist()))
    assert len(ways) == 3 * 3 * 8
    assert tuple(range(64)) not in ways


def test_rows_of_many_blocks_are_mixed_in_one_batch():
    order = BatchOrder(rows=100_000, global_batch=256, seed=0)
    assert len({row // 4096 for row in order.batch(0, 0).tolist()}) > 10


@pytest.mark.parametrize("step", [-1, 4])
def test_a_step_out_of_range_is_refused(step):
    with pytest.raises(IndexError, match=r"out of range \[0, 4\)"):
        BatchOrder(rows=100, global_batch=25, seed=0).batch(0, step)
