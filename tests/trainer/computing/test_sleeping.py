"""Ranks that sleep take their time, and contribute zeros."""

import numpy as np
import pytest
import torch

from tests.played_clock import PlayedClock
from trainer import clock
from trainer.classification import models
from trainer.classification.losses import Loss, Scale
from trainer.classification.rows import TextRows
from trainer.classification.task import text_gradients
from trainer.clock import StepTimer
from trainer.command_line import as_arguments, parse_arguments
from trainer.computing import sleeping
from trainer.computing.sleeping import SleepingComputer

FILES = ["--data", "d.h5", "--output", "out"]
SETTINGS = {"words": 80, "embedding": 8, "hidden": 8, "layers": 1, "pooling": "last", "outputs": 1}


def test_a_share_takes_as_long_as_at_the_rate_and_has_zeros_as_gradients(
    rows_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = PlayedClock()
    monkeypatch.setattr(clock, "time", played)
    monkeypatch.setattr(sleeping, "time", played)
    monkeypatch.setattr(sleeping, "_EARLY", 0.0)
    model = models.build("lstm", {**SETTINGS, "dropout": 0.0, "embedding_dropout": 0.0})
    timer = StepTimer()
    computing = text_gradients(
        model,
        TextRows(**rows_of(40, seed=1)._asdict()),
        loss=Loss(kind="bce", scale=Scale(1, 5, 4), positive_weight=1.0),
        device=torch.device("cpu"),
        timer=timer,
    )
    asleep = SleepingComputer(computing, rate=1000.0, timer=timer)
    for compute, slowness in ((asleep, 1.0), (asleep, 3.0), (asleep.with_copied_model(timer), 1.0)):
        timer.begin(40)
        assert compute(np.arange(40), 40, 0, slowness) == 0.0
        assert timer.latest_stats().seconds == pytest.approx(slowness * 0.04)
        assert all(torch.count_nonzero(each.grad) == 0 for each in compute.model.parameters())
    assert asleep.take_means() == []


def test_a_moment_that_has_passed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sleeping, "time", played := PlayedClock())
    sleeping.sleep_until(-1.0)
    assert played.now == 0.0


def test_the_rates_survive_their_command_line() -> None:
    config = parse_arguments([*FILES, "--sleep", "2000", "1000.5"])
    assert config.sleep == (2000.0, 1000.5)
    assert config.plain()["sleep"] == [2000.0, 1000.5]
    assert parse_arguments(as_arguments(config)) == config
    assert "--sleep" not in as_arguments(parse_arguments(FILES))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sleep", "0"], "--sleep is [0.0], but must be a rate above 0 for each rank"),
        (["--sleep", "inf"], "must be a rate above 0 for each rank"),
        (["--sleep", "9", "--model", "fasttext"], "--sleep goes with --model lstm"),
    ],
)
def test_what_cannot_sleep_is_refused(options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([*FILES, *options])
    assert sentence in " ".join(capsys.readouterr().err.split())
