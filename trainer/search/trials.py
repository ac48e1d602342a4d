"""Trials: settings, and how good models of them are on rows that they did not learn from.

Rows are held out in folds, and those of a fold come in blocks. Two trials are compared by the differences between the
blocks that both were measured on: what makes a block hard is the same for both, so that the standard error of the mean
difference is far below that of either mean. A difference within it says nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from operator import truediv
from statistics import NormalDist, fmean, stdev
from typing import Any, NamedTuple

from trainer.task import BlockScore


@dataclass(frozen=True, kw_only=True)
class Trial:
    settings: Mapping[str, Any]
    folds: Sequence[Sequence[BlockScore]]
    """The blocks of each fold that was measured; none where the model learnt nothing, or the time was over."""
    seconds: float

    @property
    def score(self) -> BlockScore | None:
        """The means over all blocks."""
        blocks = [block for fold in self.folds for block in fold]
        return BlockScore(*map(fmean, zip(*blocks, strict=True))) if blocks else None


CAUTIOUS: Mapping[str, Any] = {"model": "linear", "learning_rate": 0.01, "positive_weight": 1.0}
"""A model that hardly moves from the frequencies of the classes, with which it begins: the best where a text does not
tell its class."""
_CHANCE, _CHALLENGERS = 0.05, 15
"""Of searches with so many trials, none of which is better, at most this share takes one of them."""
_TINY = 1e-12


class Difference(NamedTuple):
    """The mean by which a trial's measure is better than another's, and its standard error."""

    mean: float
    error: float


def differences(one: Trial, other: Trial) -> Sequence[Difference]:
    """How much better one trial is in its score, in its log loss and in the metric, on the blocks that both have; empty
    where there are none."""
    pairs = _pairs(one, other)
    if len(pairs) < 2:
        return ()
    scores = [mine.score - theirs.score for mine, theirs in pairs]
    losses = [theirs.log_loss - mine.log_loss for mine, theirs in pairs]
    metrics = [mine.metric - theirs.metric for mine, theirs in pairs]
    return [_difference(each) for each in (scores, losses, metrics)]


def _pairs(one: Trial, other: Trial) -> Sequence[tuple[BlockScore, BlockScore]]:
    """The scores of the blocks that both trials were measured on."""
    return [pair for folds in zip(one.folds, other.folds, strict=False) for pair in zip(*folds, strict=True)]


def _difference(better: Sequence[float]) -> Difference:
    return Difference(fmean(better), stdev(better) / sqrt(len(better)))


def advantage(one: Trial, other: Trial) -> float:
    """By how many standard errors a trial is better than another; 0 where no two blocks were measured on both.

    The log loss tells more of few rows than the score, so both count alike, block by block, each as a multiple of its
    spread.
    """
    pairs = _pairs(one, other)
    if len(pairs) < 2:
        return 0.0
    better = [
        [mine.score - theirs.score for mine, theirs in pairs],
        [theirs.log_loss - mine.log_loss for mine, theirs in pairs],
    ]
    spreads = [max(stdev(each), _TINY) for each in better]
    found = _difference([sum(map(truediv, block, spreads)) for block in zip(*better, strict=True)])
    return found.mean / max(found.error, _TINY)


def is_better(challenger: Trial, holder: Trial) -> bool:
    """Whether a trial is better by more than chance (a paired t-test, corrected for the number of challengers), and
    does not pay for that with the metric that was asked for: the score has the F1 of a rare class in it, too. The
    cautious model needs less proof: over all folds its log loss is lower by a standard error, and its metric is not
    worse by more than chance. Where labels do not depend on texts, held-out rows have fewer of the class that the
    others have more of, so that the metric of a constant is low.
    """
    if not (found := differences(challenger, holder)):
        return False
    _, loss, metric = found
    least, error = _least_advantage(len(_pairs(challenger, holder))), max(metric.error, _TINY)
    if challenger.settings == CAUTIOUS:
        whole = len(challenger.folds) == len(holder.folds)
        return whole and loss.mean > loss.error and metric.mean >= -least * error
    return advantage(challenger, holder) > least and metric.mean >= -error


def _least_advantage(blocks: int) -> float:
    """The standard errors by which a trial has to be better on so many blocks: a quantile of Student's distribution
    (Abramowitz and Stegun 1964, 26.7.5)."""
    z, free = NormalDist().inv_cdf(1 - _CHANCE / _CHALLENGERS), max(1, blocks - 1)
    terms: Sequence[float] = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + terms[0] / free + terms[1] / free**2 + terms[2] / free**3


def is_hopeless(challenger: Trial, holder: Trial) -> bool:
    """Whether a trial is worse already, so that its other folds need not be tried. The cautious model is compared on
    all folds alone."""
    return challenger.settings != CAUTIOUS and advantage(challenger, holder) < -1.0


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial that no later one was better than; of equally good ones the first, which was the better guess."""
    best = trials[0]
    for trial in trials[1:]:
        if is_better(trial, best):
            best = trial
    return best
