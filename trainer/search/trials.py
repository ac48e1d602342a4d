"""Trials of a search: settings, the scores of their models on held-out rows, and comparisons of trials.

Rows are held out in folds, and each fold consists of blocks. Two trials are compared through the differences of their
scores on common blocks. A hard block is hard for both models. So the standard error of the mean difference is much
smaller than the standard error of each mean. A difference below its standard error is not significant.
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
    """Block scores of each measured fold; empty if training diverged in the first fold, or the time limit passed."""
    seconds: float

    @property
    def score(self) -> BlockScore | None:
        """Mean of the scores over all blocks; None without blocks."""
        blocks = [block for fold in self.folds for block in fold]
        return BlockScore(*map(fmean, zip(*blocks, strict=True))) if blocks else None


CAUTIOUS: Mapping[str, Any] = {"model": "linear", "learning_rate": 0.01, "positive_weight": 1.0}
"""Settings of the cautious model. Its predictions remain close to the class frequencies with which it is initialised.

It is the best model if the class does not depend on the text.
"""
_CHANCE, _CHALLENGERS = 0.05, 15
"""Family-wise error rate, and number of challengers.

The rate is the probability that one of these challengers is selected although none is better.
"""
_TINY = 1e-12


class Difference(NamedTuple):
    """Mean advantage of a trial over another trial in one measure, and the standard error of this mean."""

    mean: float
    error: float


def differences(one: Trial, other: Trial) -> Sequence[Difference]:
    """Return the advantages of `one` over `other` in score, log loss and metric, on common blocks.

    The result is empty if there are fewer than two common blocks.
    """
    pairs = _pairs(one, other)
    if len(pairs) < 2:
        return ()
    scores = [mine.score - theirs.score for mine, theirs in pairs]
    losses = [theirs.log_loss - mine.log_loss for mine, theirs in pairs]
    metrics = [mine.metric - theirs.metric for mine, theirs in pairs]
    return [_difference(each) for each in (scores, losses, metrics)]


def _pairs(one: Trial, other: Trial) -> Sequence[tuple[BlockScore, BlockScore]]:
    """Return pairs of the two trials' scores, one pair for each common block."""
    return [pair for folds in zip(one.folds, other.folds, strict=False) for pair in zip(*folds, strict=True)]


def _difference(better: Sequence[float]) -> Difference:
    return Difference(fmean(better), stdev(better) / sqrt(len(better)))


def advantage(one: Trial, other: Trial) -> float:
    """Return the advantage of `one` over `other`, in standard errors; 0 for fewer than two common blocks.

    On few rows, the log loss is more informative than the score. So the differences in score and in log loss, each
    divided by its standard deviation, are added for each block.
    """
    pairs = _pairs(one, other)
    if len(pairs) < 2:
        return 0.0
    better = [
        [mine.score - theirs.score for mine, theirs in pairs],
        [theirs.log_loss - mine.log_loss for mine, theirs in pairs],
    ]
    spreads = [max(stdev(each), _TINY) for each in better]
    combined = _difference([sum(map(truediv, block, spreads)) for block in zip(*better, strict=True)])
    return combined.mean / max(combined.error, _TINY)


def is_better(challenger: Trial, holder: Trial) -> bool:
    """Return whether a trial is significantly better than the current best.

    The decision is a paired t-test, corrected for the number of challengers. In addition, the requested metric must not
    be worse by more than its standard error, because the score includes the F1 of a rare class.

    The cautious model needs less evidence. Over all folds, its log loss must be lower by one standard error, and its
    metric must not be significantly worse. The reason is a bias: if labels do not depend on texts, a class that is
    frequent in the training part is rarer in the held-out part. So the metric of a constant model is biased downwards.
    """
    if not (advantages := differences(challenger, holder)):
        return False
    _, loss, metric = advantages
    least, error = _least_advantage(len(_pairs(challenger, holder))), max(metric.error, _TINY)
    if challenger.settings == CAUTIOUS:
        whole = len(challenger.folds) == len(holder.folds)
        return whole and loss.mean > loss.error and metric.mean >= -least * error
    return advantage(challenger, holder) > least and metric.mean >= -error


def _least_advantage(blocks: int) -> float:
    """Return the advantage that a challenger needs, in standard errors: a quantile of Student's t distribution.

    The approximation is formula 26.7.5 of Abramowitz and Stegun (1964).
    """
    z, free = NormalDist().inv_cdf(1 - _CHANCE / _CHALLENGERS), max(1, blocks - 1)
    terms: Sequence[float] = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + terms[0] / free + terms[1] / free**2 + terms[2] / free**3


def is_hopeless(challenger: Trial, holder: Trial) -> bool:
    """Return whether a trial is already worse than the best trial, so that its remaining folds can be skipped.

    The cautious model is never hopeless, because it is judged on all folds.
    """
    return challenger.settings != CAUTIOUS and advantage(challenger, holder) < -1.0


def best_of(trials: Sequence[Trial]) -> Trial:
    """Return the best trial. If trials are equally good, return the first of them, because it was the better guess."""
    best = trials[0]
    for trial in trials[1:]:
        if is_better(trial, best):
            best = trial
    return best
