"""Trials: settings, and how good models of them are on rows that they did not learn from.

Rows are held out in folds, and those of a fold come in blocks. Two trials are compared by the differences between the
blocks that both were measured on: what makes a block hard is the same for both, so that the standard error of the mean
difference is far below that of either mean. A difference within it says nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any, NamedTuple, Self

from trainer.task import BlockScore


@dataclass(frozen=True, kw_only=True)
class Trial:
    settings: Mapping[str, Any]
    folds: Sequence[Sequence[BlockScore]]
    """The blocks of each fold that was measured; none where the model learnt nothing, or the time was over."""
    seconds: float

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        folds = [[BlockScore(*block) for block in fold] for fold in plain["folds"]]
        return cls(settings=plain["settings"], folds=folds, seconds=plain["seconds"])

    def plain(self) -> dict[str, Any]:
        folds = [[tuple(block) for block in fold] for fold in self.folds]
        return {"settings": dict(self.settings), "folds": folds, "seconds": self.seconds}

    @property
    def score(self) -> BlockScore | None:
        """The means over all blocks."""
        blocks = [block for fold in self.folds for block in fold]
        return BlockScore(*map(fmean, zip(*blocks, strict=True))) if blocks else None


_CLEAR = 1.5
"""Standard errors by which a trial has to be better: of a dozen that are not, one or two are by one standard error."""


_SLOWER = 1.5
"""Times the seconds of another trial from which one counts as slower."""
_TINY = 1e-12


class Difference(NamedTuple):
    """The mean by which a trial's measure is better than another's, and its standard error."""

    mean: float
    error: float


def differences(one: Trial, other: Trial) -> Sequence[Difference]:
    """How much better one trial is in its score, in its log loss and in the metric, on the blocks that both have; empty
    where there are none."""
    pairs = [pair for folds in zip(one.folds, other.folds, strict=False) for pair in zip(*folds, strict=True)]
    if len(pairs) < 2:
        return ()
    scores = [mine.score - theirs.score for mine, theirs in pairs]
    losses = [theirs.log_loss - mine.log_loss for mine, theirs in pairs]
    metrics = [mine.metric - theirs.metric for mine, theirs in pairs]
    return [Difference(fmean(better), stdev(better) / sqrt(len(better))) for better in (scores, losses, metrics)]


def advantage(one: Trial, other: Trial) -> float:
    """By how many standard errors a trial is better than another; 0 where no block was measured on both.

    The log loss tells more of few rows than the score, so both count alike. Of a model that weights the classes
    otherwise than by default it says mostly how far its probabilities are from their shares: then the score decides.
    """
    found = [each.mean / max(each.error, _TINY) for each in differences(one, other)[:2]]
    if "positive_weight" in {**one.settings, **other.settings}:
        found = found[:1]
    return sum(found) / sqrt(max(1, len(found)))


def is_better(challenger: Trial, holder: Trial) -> bool:
    """Whether a trial is better by more than chance, and does not pay for that with the metric that was asked for:
    weights of classes can trade points of accuracy for a better score. A larger or slower model has to be better in
    its score, too: a better log loss alone does not pay for it."""
    if advantage(challenger, holder) <= _CLEAR:
        return False
    score, _, metric = differences(challenger, holder)
    if _costs_more(challenger, holder) and score.mean <= score.error:
        return False
    return metric.mean >= -max(metric.error, _TINY)


def _costs_more(one: Trial, other: Trial) -> bool:
    sizes = (each.settings.get("embedding") or 0 for each in (one, other))
    seconds = [each.seconds / max(1, len(each.folds)) for each in (one, other)]
    return next(sizes) > next(sizes) or seconds[0] > _SLOWER * seconds[1]


def is_hopeless(challenger: Trial, holder: Trial) -> bool:
    """Whether a trial is worse already, so that its other folds need not be tried."""
    return advantage(challenger, holder) < -1.0


def best_of(trials: Sequence[Trial]) -> Trial:
    """The trial that no later one was better than; of equally good ones the first, which was the better guess."""
    best = trials[0]
    for trial in trials[1:]:
        if is_better(trial, best):
            best = trial
    return best
