"""A user program that is balanced over ranks of unequal speed has the same losses as on one rank, and no rank waits."""

import re

import pytest
from shoal_balance.torch import BalancedBatches

ROWS = 1000


@pytest.fixture(scope="module")
def single_rank_losses(train, tmp_path_factory):
    return list(train(1, tmp_path_factory.mktemp("single") / "out")["losses"])


@pytest.mark.parametrize(
    "what",
    [
        pytest.param({}, id="ddp"),
        pytest.param({"workers": 2}, id="prefetching", marks=pytest.mark.soak),
        pytest.param({"own_all_reduce": True}, id="own-all-reduce", marks=pytest.mark.soak),
    ],
)
def test_two_unequal_ranks_have_the_losses_of_one_and_split_rows_by_speed(train, single_rank_losses, tmp_path, what):
    result = train(2, tmp_path / "out", slow=(1e-4, 1.79e-4), **what)
    assert result["losses"] == pytest.approx(single_rank_losses, abs=1e-5)
    assert len(single_rank_losses) == 2 * 16
    assert result["shares"][0] == [32, 32]
    assert result["shares"][-1] == [41, 23]


@pytest.mark.parametrize(
    "what",
    [
        pytest.param({"accumulate": 4}, marks=pytest.mark.slow),
        pytest.param({"scaled": True, "clip": 0.05}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_accumulated_clipped_and_scaled_gradients_equal_those_of_one_rank(train, tmp_path, what):
    one = train(1, tmp_path / "one", **what)
    two = train(2, tmp_path / "two", slow=(1e-4, 3e-4), **what)
    assert two["losses"] == pytest.approx(one["losses"], abs=1e-5)


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_training_continues_with_another_number_of_ranks(train, single_rank_losses, tmp_path, ranks):
    first = train(2, tmp_path / "first", stop_after=21, slow=(1e-4, 3e-4))
    second = train(ranks, tmp_path / "second", resume=str(tmp_path / "first.pt"))
    assert [*first["losses"], *second["losses"]] == pytest.approx(single_rank_losses, abs=1e-5)


def test_skip_to_drops_batches_that_were_drawn(messages):
    batches, other = (BalancedBatches(ROWS, global_batch=64, seed=1) for _ in range(2))
    whole = list(other)
    drawn = iter(batches)
    for _ in range(5):
        next(drawn)
    batches.skip_to(3)
    with batches.step() as step:
        assert (step.number, step.rows) == (3, 64)
    batches.skip_to(5)
    assert list(drawn) == whole[5:]
    with batches.step() as step:
        assert step.number == 5
    for wrong in (2, 16):
        with messages.raises(ValueError):
            batches.skip_to(wrong)


@pytest.mark.parametrize("stops", [(), (0,), (3, 5), (16, 16)])
def test_an_interrupted_epoch_still_has_each_row_once(stops):
    batches, seen = BalancedBatches(ROWS, global_batch=64, seed=1), []
    for stop in (*stops, 16):
        for number, rows in enumerate(batches):
            if number == stop or batches.epoch:
                break
            with batches.step() as step:
                assert (step.rows, step.loss_scale) == (len(rows), 1.0)
            seen += rows
    done = batches.state_dict()
    again = BalancedBatches(ROWS, global_batch=64, seed=1)
    again.load_state_dict(done)
    assert again.state_dict() == done
    assert len(seen) == min(ROWS, 64 * (sum(stops) + 16))
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("sizes", [{"rows": 0}, {"global_batch": 0}, {"max_rows": 63}], ids=str)
def test_invalid_sizes_are_refused(sizes, messages):
    with messages.raises(ValueError):
        BalancedBatches(**{"rows": 100, "global_batch": 64, **sizes})


def test_a_state_of_another_training_and_a_step_without_a_batch_are_refused(messages):
    batches = BalancedBatches(100, global_batch=10)
    with messages.raises(ValueError):
        batches.load_state_dict(BalancedBatches(100, global_batch=10, seed=1).state_dict())
    with messages.raises(RuntimeError), batches.step():
        pass


def test_batch_normalisation_causes_a_warning(tmp_path):
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        batches = BalancedBatches(100, global_batch=10)
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        with pytest.warns(UserWarning, match="batch normalisation"):
            batches.measure(DistributedDataParallel(model))
    finally:
        dist.destroy_process_group()


@pytest.mark.soak
@pytest.mark.parametrize(
    ("example", "last"), [("unequal_gpus.py", r"epoch 4: loss [\d.]+, "), ("transformers_trainer.py", "")]
)
def test_the_example_learns_and_prints_the_rows_of_each_rank(run_on_ranks, example, last, tmp_path):
    printed = run_on_ranks(2, f"examples/{example}", str(tmp_path / "results"), SLOW_RANK="1")
    found = re.fullmatch(last + r"accuracy ([\d.]+)%, rows of each rank \[\d+, \d+\]", printed.splitlines()[-1])
    assert found, printed
    assert float(found[1]) > 90
