"""Trials are compared block by block. Only significant differences count."""

from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from trainer.config import TrainConfig
from trainer.search import trials
from trainer.search.search import verdict
from trainer.search.trials import CAUTIOUS, Trial, best_of, differences, is_better, is_hopeless
from trainer.task import BlockScore

ERROR = 1 / sqrt(7)
"""Standard error of a mean over eight blocks that deviate by 1 up and down."""
HARD = (0.0, -0.1, -0.3, 0.1)
"""Difficulty of each block, the same for all models."""


def trial(score: float = 0.8, loss: float = 0.4, *, noise: float = 0.001, folds: int = 2) -> Trial:
    def block(number):
        more = noise * (-1) ** number
        return BlockScore(score + HARD[number] + more, 0.5, loss - HARD[number] - more, 0.0)

    blocks = [block(number) for number in range(len(HARD))]
    return Trial(settings={"model": "fasttext", "epochs": 3}, folds=[blocks] * folds, seconds=2.0)


BASE = trial(noise=0.0)


@pytest.mark.parametrize(
    ("challenger", "better"),
    [
        (trial(0.81), True),
        (trial(0.79, 0.41), False),
        (trial(0.8 + 3.9 * 2 * ERROR * 0.003, noise=0.003), True),  # the quantile of Student's distribution is 3.8
        (trial(0.8 + 3.7 * 2 * ERROR * 0.003, noise=0.003), False),
        (trial(0.805, 0.395, noise=0.003), True),
        (trial(0.799, 0.38), True),
        (trial(loss=0.41), False),
        (trial(0.801, noise=0.01), False),
    ],
)
def test_a_significantly_better_trial_wins(challenger, better):
    assert is_better(challenger, BASE) is better


def cautious(found: Trial) -> Trial:
    return replace(found, settings=CAUTIOUS)


@pytest.mark.parametrize(
    ("score", "errors", "better"), [(0.7, 1.1, True), (0.7, 0.9, False), (0.9, 0.0, False), (0.7, -26.0, False)]
)
def test_the_cautious_model_wins_by_a_standard_error_of_the_log_loss(score, errors, better):
    assert is_better(cautious(trial(score, 0.4 - errors * ERROR * 0.001)), BASE) is better


def test_the_cautious_model_needs_all_folds_and_must_not_worsen_the_metric():
    low_loss = cautious(trial(0.7, 0.35))
    assert not is_hopeless(low_loss, BASE)
    assert not is_better(replace(low_loss, folds=low_loss.folds[:1]), BASE)
    assert not is_better(with_metric(low_loss, -0.1), BASE)
    assert is_better(worsened(low_loss, 3.7), BASE)  # insignificantly
    assert not is_better(worsened(low_loss, 3.9), BASE)
    assert is_better(with_metric(low_loss, -0.1), with_metric(BASE, -0.1))


@pytest.mark.parametrize(("blocks", "folds"), [(5, 1), (5, 5)])
def test_at_most_one_search_in_twenty_selects_one_of_fifteen_equal_trials(blocks, folds, monkeypatch):
    monkeypatch.setattr(trials, "stdev", lambda values: float(np.std(values, ddof=1)))  # the same, but faster
    chance = np.random.default_rng(0)

    def useless():
        """Simulate equally good models: common noise is left out, and score and log loss of a block are correlated."""
        score = chance.normal(0, 0.01, (folds, blocks))
        losses = chance.normal(0, 0.01, (folds, blocks)) - score
        found = [
            [BlockScore(*block, 0.0) for block in zip(mine, mine, loss, strict=True)]
            for mine, loss in zip(score.tolist(), losses.tolist(), strict=True)
        ]
        return Trial(settings={}, folds=found, seconds=1.0)

    searches = ([useless() for _ in range(16)] for _ in range(300))
    taken = [best_of(made) is not made[0] for made in searches]
    assert sum(taken) <= 0.05 * len(taken) + 2 * (0.05 * len(taken)) ** 0.5


def with_metric(found: Trial, metric: float, noise: float = 0.0) -> Trial:
    folds = [
        [each._replace(metric=metric + noise * (-1) ** number) for number, each in enumerate(fold)]
        for fold in found.folds
    ]
    return replace(found, folds=folds)


def worsened(found, errors):
    """Return a trial with a metric that is worse than that of BASE by some standard errors."""
    return with_metric(found, 0.5 - errors * ERROR * 0.005, noise=0.005)


def test_a_better_score_must_not_worsen_the_metric():
    better = trial(0.81)
    assert not is_better(worsened(better, 1.1), BASE)
    assert is_better(worsened(better, 0.9), BASE)
    assert is_better(with_metric(better, 0.51), BASE)


def test_block_difficulty_does_not_add_to_the_error_of_a_difference():
    score, *_ = differences(trial(0.81), BASE)
    assert score.mean == pytest.approx(0.01)
    assert score.error < 0.001


def test_other_folds_are_needed_unless_a_trial_is_worse_by_a_standard_error():
    for errors, hopeless in ((1.1, True), (0.9, False), (-1.1, False)):
        assert is_hopeless(trial(0.8 - errors * sqrt(4 / 3) * 0.008, noise=0.008, folds=1), BASE) is hopeless
    assert not is_hopeless(Trial(settings={}, folds=(), seconds=0.0), BASE)


def test_a_tie_takes_the_first_trial_and_never_one_without_a_score():
    empty = Trial(settings={"model": "lstm"}, folds=(), seconds=1.0)
    same, better = trial(), trial(0.81)
    assert best_of([BASE, same, empty]) is BASE
    assert best_of([BASE, better, same, empty]) is better
    assert empty.score is None


def test_the_verdict_names_both_differences_that_decided(messages):
    chosen = replace(trial(loss=0.35), settings={"model": "lstm"})
    config = TrainConfig(data=Path("data"), output=Path("out"), model="auto")
    messages.check(verdict(config, [BASE, chosen], chosen.settings))
