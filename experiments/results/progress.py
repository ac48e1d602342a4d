"""How long a run had trained at each of its steps, and when it had reached a target.

Seconds are those of training, with checkpoints and without evaluation, over all starts of a run. The record has the
rows a second since a start, from which they follow; so a resumed run counts what it did before. Do not take the time of
a line for that: it has evaluation in it, and the time between two starts.
"""

from collections.abc import Sequence
from statistics import mean

import numpy as np

from experiments.plans.parts import Target
from experiments.records.runs import RunRecord
from trainer.output.lines import Start

_STEPS = 5
"""Recorded steps whose mean loss has to reach a target: the loss of one batch may be low by chance."""


def training_seconds(run: RunRecord) -> list[float]:
    """The seconds of training at each of the run's recorded steps, as many as `run.steps`."""
    found: list[float] = []
    starts, before = list(run.starts), 0.0
    for step in run.steps:
        while len(starts) > 1 and starts[1].time <= step.time:
            starts.pop(0)
            before = _seconds_at(run, found, starts[0].from_step)
        rows = _rows(starts[0], step.step) - _rows(starts[0], starts[0].from_step)
        found.append(before + rows / step.rows_per_second if step.rows_per_second else before)
    return found


def seconds_to(run: RunRecord, target: Target) -> float | None:
    """The seconds of training until the run had reached a target; None if it has not. A loss is the mean of the latest
    recorded steps, a measure that on the validation rows after an epoch."""
    seconds = training_seconds(run)
    if target.loss is not None:
        losses = [step.loss for step in run.steps]
        ends = range(min(_STEPS, len(losses)), len(losses) + 1) if losses else ()
        means = ((end, mean(losses[max(0, end - _STEPS) : end])) for end in ends)
        return next((seconds[end - 1] for end, loss in means if loss <= target.loss), None)
    assert target.measure is not None
    for epoch in run.epochs:
        if target.is_reached(epoch.validation.get(target.measure)):
            return _seconds_at(run, seconds, epoch.epoch * run.latest.steps // max(1, run.latest.epochs))
    return None


def _seconds_at(run: RunRecord, seconds: Sequence[float], step: int) -> float:
    """The seconds after so many steps, between the recorded steps beside it, the first of which have these seconds.

    Steps after the last recorded one take as long as those before it.
    """
    steps = [each.step for each in run.steps[: len(seconds)]]
    found = float(np.interp(step, [0, *steps], [0.0, *seconds]))
    if steps and step > steps[-1] and (rate := run.steps[len(steps) - 1].rows_per_second):
        found += (_rows(run.latest, step) - _rows(run.latest, steps[-1])) / rate
    return found


def _rows(start: Start, steps: int) -> int:
    rows = start.rows.get("training", 0)
    of_an_epoch = start.steps // max(1, start.epochs)
    if not of_an_epoch:
        return 0
    epochs, rest = divmod(steps, of_an_epoch)
    return epochs * rows + min(rest * start.global_batch, rows)
