"""What a resumed run keeps, what may change, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import TrainingError
from trainer.command_line import parse_arguments
from trainer.computing.optimiser import learning_rate
from trainer.config import TrainConfig
from trainer.options.presets import GLOBAL_BATCH
from trainer.resume import resumed_config

ROWS = 1000


def config(**settings: Any) -> TrainConfig:
    return TrainConfig(data=Path("d.h5"), output=Path("out"), **settings)


def state(ranks: int = 1, epoch: int = 0, step: int = 0, **settings: Any) -> dict[str, Any]:
    """Of a run that was begun with these settings."""
    made = config(**settings)
    progress = {"epoch": epoch, "step": step}
    return {"config": made.plain(), "digest": "a", "global_batch": made.batch_for(ranks), "progress": progress}


def advance(of: dict[str, Any], ranks: int = 1, **settings: Any) -> tuple[TrainConfig, list[str]]:
    return resumed_config(of, config(resume=True, **settings), digest="a", rows=ROWS, ranks=ranks)


def refused(of: dict[str, Any], sentence: str, ranks: int = 1, **settings: Any) -> None:
    with pytest.raises(TrainingError, match=sentence):
        advance(of, ranks, **settings)


def test_what_followed_the_rows_is_kept() -> None:
    assert advance(state(buckets=100))[0].buckets == 100
    assert advance(state(temperature=2.0))[0].temperature == 2.0
    refused(state(buckets=100), "made with --buckets 100, not --buckets 7", buckets=7)


def test_another_dataset_or_setting_is_refused() -> None:
    assert advance(state(), threads=8)[1] == []
    with pytest.raises(TrainingError, match=r"made with another dataset than d\.h5; resume with what it was made with"):
        resumed_config(state(), config(), digest="b", rows=ROWS, ranks=1)
    refused(state(), "the checkpoints in out/checkpoints were made with --seed 0, not --seed 1", seed=1)
    refused(state(), "made with no --positive-weight of its own, not --positive-weight 2", positive_weight=2.0)


def test_what_mends_a_run_may_change_and_is_said() -> None:
    going, notes = advance(state(), learning_rate=1e-3)
    assert going.learning_rate == 1e-3
    assert notes == ["continuing with --learning-rate 0.001; it was 0.008"]


@given(
    st.sampled_from([{}, {"global_batch": 96}, {"rank_batch": 32}, {"epochs": 9}, {"global_batch": 7, "epochs": 2}]),
    st.integers(1, 5),
    st.integers(1, 5),
)
def test_what_is_not_given_is_as_it_was_on_any_number_of_ranks(made: dict[str, int], ranks: int, then: int) -> None:
    of = state(ranks, **made)
    going, notes = advance(of, then)
    assert notes == []
    assert {name: getattr(going, name) for name in ("global_batch", "rank_batch", "epochs")} == {
        name: of["config"][name] for name in ("global_batch", "rank_batch", "epochs")
    }


@given(st.integers(1, 99), st.integers(1, 5), st.integers(1, 5))
def test_what_is_given_as_it_was_changes_nothing(rows: int, ranks: int, then: int) -> None:
    made = {"global_batch": rows}
    assert advance(state(ranks, **made), then, **made) == advance(state(ranks, **made), then)
    made = {"rank_batch": rows}
    going, notes = advance(state(ranks, **made), then, **made)
    assert going == advance(state(ranks, **made), then)[0]
    assert len(notes) == (ranks != then)


def test_a_step_has_the_rows_that_it_had_and_that_is_said_where_ranks_would_make_it_larger() -> None:
    assert advance(state(2, rank_batch=64), 3, rank_batch=64)[1] == [
        "--rank-batch 64 makes steps of 192 rows on 3 ranks, but the run keeps its own, of 128 rows"
    ]


def test_other_rows_in_a_step_are_refused_and_those_of_the_run_named() -> None:
    wrong = (
        r"--global-batch is 64, but the run in out has steps of 128 rows; leave it out, or start in another --output"
    )
    refused(state(global_batch=128), wrong, global_batch=64)
    refused(state(2, rank_batch=64), wrong, global_batch=64)
    refused(state(), f"the run in out has steps of {GLOBAL_BATCH} rows", global_batch=64)
    refused(state(2, rank_batch=64), "--rank-batch 32 makes steps of 64 rows on 2 ranks, but", 2, rank_batch=32)
    refused(state(global_batch=64), "--rank-batch 64 makes steps of 128 rows on 2 ranks, but", 2, rank_batch=64)


def test_the_same_rows_may_be_told_in_another_way() -> None:
    assert advance(state(2, rank_batch=64), 2, global_batch=128)[1] == []
    assert advance(state(), 2, rank_batch=GLOBAL_BATCH // 2)[1] == []
    assert advance(state(), global_batch=GLOBAL_BATCH)[0].global_batch is None


def test_more_epochs_are_said_with_the_learning_rate_of_a_run_of_so_many() -> None:
    of = state(epoch=2, step=3, epochs=4, global_batch=100)
    going, (note,) = advance(of, epochs=8)
    assert going.epochs == 8
    now, before = (learning_rate(going, 23, 10 * epochs, 100) for epochs in (8, 4))
    assert note == (
        "continuing to 8 epochs; they were to be 4. The learning rate is from here on that of a run of 8: at step 24 "
        f"it is {now:.2g}, and was to be {before:.2g}"
    )


@pytest.mark.parametrize("ranks", [1, 2])
def test_what_a_preset_says_is_not_given(ranks: int) -> None:
    command = ["--data=d.h5", "--output=out", "--preset=reference"]
    begun = parse_arguments([*command, "--epochs=20", "--global-batch=128"])
    of = {**state(ranks, epoch=12), "config": begun.plain(), "global_batch": 128}
    going, notes = resumed_config(of, parse_arguments([*command, "--resume"]), digest="a", rows=ROWS, ranks=ranks)
    assert (going.epochs, going.global_batch, going.rank_batch, notes) == (20, 128, None, [])
    with pytest.raises(TrainingError, match="--epochs is 10, but the run in out has done 96 steps"):
        resumed_config(of, parse_arguments([*command, "--resume", "--epochs=10"]), digest="a", rows=ROWS, ranks=1)


def test_the_rates_of_a_run_that_is_cut_to_what_is_done_are_said_also_in_its_warm_up() -> None:
    of = state(epoch=2, epochs=4, warm_up=0.97)
    assert len(advance(of, epochs=2, warm_up=0.97)[1]) == 1


def test_epochs_that_were_never_given_may_be_told_or_changed() -> None:
    of = state(epoch=1)  # 4 steps an epoch
    assert config().epochs_for(4) == 48
    assert advance(of, epochs=48)[1] == []
    assert len(advance(of, epochs=30)[1]) == 1


@given(st.integers(1, 9), st.integers(0, 8), st.integers(0, 10), st.integers(1, 20))
def test_epochs_may_be_any_but_fewer_than_are_done(before: int, epoch: int, step: int, now: int) -> None:
    epoch = min(epoch, before - 1)
    of = state(epoch=epoch, step=step, epochs=before, global_batch=100)
    if epoch * 10 + step == before * 10 and now != before:  # only its evaluation is left
        refused(of, f"has come to the end of its {before} epoch", epochs=now)
    elif now * 10 < epoch * 10 + step:
        least = epoch + (step > 0)
        refused(
            of, f"--epochs is {now}, but the run in out has done .* of 10 an epoch; give at least {least}", epochs=now
        )
    else:
        going, notes = advance(of, epochs=now)
        assert going.epochs == now
        assert len(notes) == (now != before)


def test_a_run_at_its_end_has_no_more_epochs() -> None:
    of = state(epoch=4, epochs=4)
    sentence = "the run in out has come to the end of its 4 epochs; leave out --epochs, or start in another --output"
    refused(of, sentence, epochs=8)
    refused(of, sentence, epochs=3)
    assert advance(of)[1] == advance(of, epochs=4)[1] == []
