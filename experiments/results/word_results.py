"""What the runs of an arm found that learns word embeddings.

Embeddings are evaluated after each epoch, and may become worse again. So the best PIP loss is that of any epoch, as in
the tables that this is compared with; do not take it for the measure of the vectors that were saved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median

from experiments.records.runs import RunRecord, numbers
from trainer.options.embedding_options import PIP_LOSS, PIP_MEAN_SQUARE


@dataclass(frozen=True, kw_only=True)
class WordResult:
    """Of the finished runs of an arm. What is not known is None."""

    seconds_an_epoch: float
    """The median; of training, without evaluation."""
    words_a_second: float
    """The median; of running words, also those that are subsampled or have no embedding."""
    pip_loss: float | None
    """The mean of the best after any epoch."""
    pip_mean_square: float | None
    """The same of the loss that does not grow with the number of words."""
    loss: float | None
    """The mean loss of a pair of words at the end, of rows that nobody learnt from."""


def word_result(runs: Sequence[RunRecord]) -> WordResult | None:
    """What finished runs found; None where none of them tells it."""
    told = [
        (seconds, rate * words, epochs)
        for run in runs
        if (seconds := run.told("seconds")) is not None
        and (rate := run.told("samples_per_second")) is not None
        and (words := run.told("words_a_row")) is not None
        and (epochs := run.told("epochs"))
    ]
    if not told:
        return None
    losses = [run.test.loss for run in runs if run.test is not None]
    return WordResult(
        seconds_an_epoch=median(seconds / epochs for seconds, _, epochs in told),
        words_a_second=median(rate for _, rate, _ in told),
        pip_loss=_best(runs, PIP_LOSS),
        pip_mean_square=_best(runs, PIP_MEAN_SQUARE),
        loss=mean(losses) if losses else None,
    )


def _best(runs: Sequence[RunRecord], measure: str) -> float | None:
    """The mean of the lowest value that each run had after an epoch."""
    found = [
        min(values)
        for run in runs
        if (values := [of_epoch[measure] for epoch in run.epochs if measure in (of_epoch := numbers(epoch.validation))])
    ]
    return mean(found) if found else None
