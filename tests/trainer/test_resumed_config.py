"""Resuming a run: settings that it keeps, settings that may change, and refused ones."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import TrainingError
from trainer.command_line import parse_arguments
from trainer.config import TrainConfig, configured
from trainer.options.optimisation_options import GLOBAL_BATCH
from trainer.resuming import resumed_config
from trainer.start import require_same_data


def config(**settings: Any) -> TrainConfig:
    return configured({"model": "lstm", "data": Path("d.h5"), "output": Path("out"), **settings})


def state(ranks: int = 1, epoch: int = 0, step: int = 0, **settings: Any) -> dict[str, Any]:
    """Return the state saved a run that was started with these settings."""
    made = config(**settings)
    progress = {"epoch": epoch, "step": step}
    return {
        "config": made.plain(),
        "digest": "a",
        "global_batch": made.optimisation.batch_for(ranks),
        "progress": progress,
    }


def resume(saved: dict[str, Any], **settings: Any) -> tuple[TrainConfig, list[str]]:
    return resumed_config(saved, config(resume=True, **settings))


def test_settings_derived_from_the_rows_are_kept_and_neutral_ones_may_change():
    fasttext = {"model": "fasttext"}
    assert resume(state(**fasttext, buckets=100), **fasttext)[0].options.buckets == 100
    assert resume(state(), threads=8)[1] == []
    assert resume(state(), global_batch=GLOBAL_BATCH)[0].optimisation.global_batch is None


def test_another_dataset_is_refused(messages):
    with messages.raises(TrainingError):
        require_same_data(state(), config(), "b")


@pytest.mark.parametrize(
    ("saved", "given"),
    [
        ({}, {"seed": 1}),
        ({}, {"positive_weight": 2.0}),
        ({}, {"rank_batch": 64}),
        ({"model": "fasttext", "buckets": 100}, {"model": "fasttext", "buckets": 7}),
        ({"global_batch": 128}, {"global_batch": 64}),
        ({"ranks": 2, "rank_batch": 64}, {"rank_batch": 32}),
        ({"epochs": 4}, {"epochs": 8}),
    ],
    ids=str,
)
def test_a_setting_that_changes_what_is_learned_is_refused(saved, given, messages):
    with messages.raises(TrainingError):
        resume(state(**saved), **given)


def test_settings_that_repair_a_diverged_run_may_change_and_are_noted(messages):
    resumed, notes = resume(state(), learning_rate=1e-3)
    assert resumed.optimisation.learning_rate == 1e-3
    messages.check(*notes)


@given(
    st.sampled_from([{}, {"global_batch": 96}, {"rank_batch": 32}, {"epochs": 9}, {"global_batch": 7, "epochs": 2}]),
    st.integers(1, 5),
)
def test_omitted_or_equal_settings_are_those_of_the_run(made, ranks):
    saved = state(ranks, **made)
    for resumed, notes in (resume(saved), resume(saved, **made)):
        assert notes == []
        assert {name: getattr(resumed.optimisation, name) for name in ("global_batch", "rank_batch", "epochs")} == {
            name: saved["config"][name] for name in ("global_batch", "rank_batch", "epochs")
        }


@pytest.mark.parametrize("ranks", [1, 2])
def test_settings_of_a_preset_do_not_count_as_given(ranks, messages):
    command = ["--data=d.h5", "--output=out", "--preset=reference"]
    original = parse_arguments([*command, "--epochs=20", "--global-batch=128"])
    saved = {**state(ranks, epoch=12), "config": original.plain(), "global_batch": 128}
    resumed, notes = resumed_config(saved, parse_arguments([*command, "--resume"]))
    kept = resumed.optimisation
    assert (kept.epochs, kept.global_batch, kept.rank_batch, notes) == (20, 128, None, [])
    with messages.raises(TrainingError):
        resumed_config(saved, parse_arguments([*command, "--resume", "--epochs=10"]))


def test_the_default_epochs_of_a_model_do_not_count_as_given(messages):
    command = ["--data=d.h5", "--output=out", "--model=linear"]
    saved = {**state(), "config": parse_arguments([*command, "--epochs=20"]).plain()}
    assert resumed_config(saved, parse_arguments([*command, "--resume"]))[0].optimisation.epochs == 20
    with messages.raises(TrainingError):
        resumed_config(saved, parse_arguments([*command, "--resume", "--epochs=3"]))
