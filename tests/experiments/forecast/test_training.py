"""Rates are found again from the runs that were made by them, and predict other runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ExperimentError
from corpus.dataset_settings import Settings
from corpus.rules import VALIDATION_SHARE
from experiments.forecast.estimate import Estimate, total
from experiments.forecast.rates import Rates, rates_of
from experiments.forecast.training import TrainingWork, predict_training, work_on
from experiments.forecast.words import WordTask, task_of_runs
from experiments.records.runs import RunRecord, read_run
from tests.experiments import made_records as records
from trainer.balancing.speed import TimeModel
from trainer.balancing.split import equal_finish_split
from trainer.options.presets import GLOBAL_BATCH

LINES = (TimeModel(0.002, 1e-4), TimeModel(0.004, 3e-4))
EPOCHS = 2


def a_run(
    folder: Path, *, batch: int, rows: int, others: float = 0.003, ranks: tuple[TimeModel, ...] = LINES, **config: Any
) -> RunRecord:
    """A finished run of ranks that take exactly as long as these lines say, and `others` a step besides."""
    fixed, per_row = np.array(ranks).T.copy()
    steps_an_epoch = -(-rows // batch)
    now, lines = (
        100.0,
        [
            records.start(
                100.0,
                config={**records.CONFIG, **config},
                world_size=len(ranks),
                rows={"training": rows, "validation": 50, "test": 100},
                global_batch=batch,
                epochs=EPOCHS,
                steps=EPOCHS * steps_an_epoch,
            )
        ],
    )
    training = 0.0
    for number in range(1, EPOCHS * steps_an_epoch + 1):
        size = rows - (steps_an_epoch - 1) * batch if number % steps_an_epoch == 0 else batch
        split = equal_finish_split(size, fixed, per_row)
        seconds = [line.seconds(count) if count else 0.0 for line, count in zip(ranks, split.tolist(), strict=True)]
        training += max(seconds) + others
        lines.append({**records.step(number, now + training), "split": split.tolist(), "compute_seconds": seconds})
    times = {
        "loading": 0.5 + rows * 1e-5,
        "rates": 2.0,
        "training": training,
        "checkpoints": 0.25,
        "evaluation": 0.4,
        "other": 0.1,
    }
    last = now + training + 1
    lines += [
        *(records.epoch(number, last) for number in range(1, EPOCHS + 1)),
        records.checkpoint(EPOCHS * steps_an_epoch, last),
        records.tested(last),
        records.end(last, times=times, wall=sum(times.values()), seconds=training + 0.25, vocabulary=9),
    ]
    return read_run(records.write(folder, *lines))


def work(batch: int, rows: int, **changes: Any) -> TrainingWork:
    return TrainingWork(rows=rows, validation=50, test=100, epochs=EPOCHS, global_batch=batch, row_bytes=100, **changes)


def test_a_run_predicts_itself(tmp_path: Path) -> None:
    run = a_run(tmp_path, batch=256, rows=20_000)
    found = predict_training(work(256, 20_000), rates_of([run]))
    assert run.summary is not None
    assert found.training == pytest.approx(run.summary["times"]["training"], rel=0.02)
    assert found.all == pytest.approx(run.summary["wall"], rel=0.02)


def test_two_runs_predict_one_of_other_rows_and_another_batch(tmp_path: Path) -> None:
    rates = rates_of(
        [a_run(tmp_path / str(batch), batch=batch, rows=rows) for batch, rows in ((64, 5_000), (512, 20_000))]
    )
    for rank, line in zip(rates.ranks, LINES, strict=True):
        assert rank.per_row == pytest.approx(line.per_row, rel=0.05)
    other = a_run(tmp_path / "other", batch=192, rows=60_000)
    assert other.summary is not None
    assert predict_training(work(192, 60_000), rates).all == pytest.approx(other.summary["wall"], rel=0.05)


@pytest.mark.parametrize("every", [1, 3, 10])
def test_a_short_step_counts_as_often_as_it_was_made_however_few_are_recorded(tmp_path: Path, every: int) -> None:
    run = a_run(tmp_path, batch=1024, rows=10 * 1024 + 256)
    recorded = tuple(step for step in run.steps if step.step % every == 0 or step is run.steps[-1])
    assert rates_of([replace(run, steps=recorded)]).others.seconds(1024) == pytest.approx(0.003, rel=0.05)


def test_without_balancing_the_slower_rank_decides(tmp_path: Path) -> None:
    rates = rates_of([a_run(tmp_path / "a", batch=64, rows=5_000), a_run(tmp_path / "b", batch=512, rows=20_000)])
    equal = predict_training(work(256, 25_600, balance="off"), rates)
    assert equal.computing == pytest.approx(EPOCHS * 100 * LINES[1].seconds(128), rel=0.05)
    assert predict_training(work(256, 25_600), rates).computing < equal.computing


def test_by_the_last_epochs_speeds_all_epochs_but_the_first_are_balanced(tmp_path: Path) -> None:
    rates = rates_of([a_run(tmp_path / "a", batch=64, rows=5_000), a_run(tmp_path / "b", batch=512, rows=20_000)])
    equal, balanced, by_epoch, by_many, fixed = (
        predict_training(work(256, 25_600, balance=how), rates).computing
        for how in ("off", "steps", "epoch:1", "epoch:1000", "1,1")
    )
    assert by_epoch == pytest.approx((equal + (EPOCHS - 1) * balanced) / EPOCHS)
    assert (by_many, fixed) == (equal, equal)
    with pytest.raises(ExperimentError, match="--balance 3,1,1 has 3 shares for 2 ranks; give one each"):
        predict_training(work(256, 25_600, balance="3,1,1"), rates)


RATES = Rates(
    source="", off=0.1, model={}, nodes=(), ranks=LINES, others=TimeModel(0.001, 1e-6), evaluation=1e-4,
    loading=TimeModel(0.1, 1e-6), around=3.0, checkpoint=0.2,
)  # fmt: skip


@given(rows=st.integers(1, 5000), more=st.integers(0, 5000), batch=st.integers(2, 600))
def test_more_rows_never_take_less_time(rows: int, more: int, batch: int) -> None:
    less, all_ = (predict_training(work(batch, count), RATES).all for count in (rows, rows + more))
    assert all_ >= less


def test_a_training_takes_the_sum_of_its_parts() -> None:
    found = predict_training(work(200, 1_050, balance="3,1", checkpoint_minutes=0.001), RATES)
    assert found.computing == pytest.approx(2 * (5 * (0.004 + 50 * 3e-4) + (0.004 + 12 * 3e-4)), rel=0.02)
    assert found.others == pytest.approx(2 * (5 * 0.0012 + 0.00105))
    assert found.evaluation == pytest.approx(200 * 1e-4)
    assert found.loading == pytest.approx(0.1 + 1_200 * 1e-6)
    assert found.checkpoints == pytest.approx(0.2 * (1 + int(found.training / 0.06)))
    assert found.checkpoints > 0.4
    assert found.all == pytest.approx(3.0 + found.loading + found.training + found.evaluation + found.checkpoints)


def test_a_dataset_is_split_as_by_default() -> None:
    found = work_on(1_000, 3, None, 100)
    assert (found.rows + found.validation + found.test, found.epochs) == (1_000, 3)
    assert (found.test, found.global_batch) == (round(Settings().test_share * 1_000), GLOBAL_BATCH)
    assert found.validation == int((1_000 - found.test) * VALIDATION_SHARE) > 0


def test_runs_of_other_models_and_unfinished_ones_are_named(tmp_path: Path) -> None:
    one = a_run(tmp_path / "one", batch=256, rows=5_000)
    with pytest.raises(ExperimentError, match="two is not of the same model"):
        rates_of([one, a_run(tmp_path / "two", batch=256, rows=5_000, hidden=64)])
    with pytest.raises(ExperimentError, match="words is not of the same model"):
        rates_of([one, a_run(tmp_path / "words", batch=256, rows=5_000, model="fasttext")])
    with pytest.raises(ExperimentError, match="three has not ended"):
        rates_of([read_run(records.write(tmp_path / "three", records.start(), records.step(1, 101)))])


def test_runs_of_one_rank_tell_what_it_learns_of_words_and_how_fast(tmp_path: Path) -> None:
    config = {"model": "skipgram", "embedding": 50, "negatives": 7, "subsample": 1e-4}
    run = a_run(tmp_path / "one", batch=256, rows=20_000, ranks=LINES[:1], **config)
    task, rate = task_of_runs([run.folder], "async:5", None)
    assert task == WordTask(size=50, vocabulary=9, rows=256, mode="async:5", negatives=7, subsample=1e-4)
    assert task_of_runs([run.folder], "sync", 8)[0].rows == 8
    assert rate.line.seconds(256) == pytest.approx(LINES[0].seconds(256) + 0.003, rel=0.02)
    assert (rate.nodes, rate.message, rate.off) == ((), 1e-4, 0.1)
    for name, changes in (("lstm", {"ranks": LINES[:1]}), ("two", config)):
        other = a_run(tmp_path / name, batch=256, rows=5_000, **changes)
        with pytest.raises(ExperimentError, match=f"{name} is not a training of one rank on words"):
            task_of_runs([other.folder], "sync", None)


AMOUNTS = st.floats(0, 1e6)


@given(first=AMOUNTS, second=AMOUNTS, off=st.floats(0, 2), factor=st.floats(0, 10))
def test_estimates_keep_their_order(first: float, second: float, off: float, factor: float) -> None:
    found = total([Estimate.about(first, off), Estimate.exact(second).times(factor)])
    assert found.low <= found.middle <= found.high
    assert found.middle == pytest.approx(first + second * factor)


def test_of_a_launch_on_nodes_the_training_counts_and_not_their_start(tmp_path: Path) -> None:
    def around(**launch: Any) -> float:
        run = a_run(tmp_path / "run", batch=256, rows=20_000)
        (run.folder / "launch.json").write_text(json.dumps(launch))
        return rates_of([read_run(run.folder)]).around

    assert around(seconds=500.0) - around(seconds=400.0) == pytest.approx(100)
    stages = [{"name": "start the nodes", "seconds": 900.0}, {"name": "train", "seconds": 400.0}]
    assert around(seconds=1300.0, stages=stages) == pytest.approx(around(seconds=400.0))
    assert around(seconds=1300.0, stages=["train"]) == around()
