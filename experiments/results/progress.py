"""How long a run had trained at each of its steps, and when it had reached a target.

Seconds are those of training, with checkpoints and without evaluation, over all starts of a run. The record has the
rows a second since a start, from which they follow; so a resumed run counts what it did before. Do not take the time of
a line for that: it has evaluation in it, and the time between two starts.
"""

from statistics import mean

from experiments.plans.parts import Target
from experiments.records.runs import RunRecord
from trainer.output.lines import Start

_STEPS = 5
"""Recorded steps whose mean loss has to reach a target: the loss of one batch may be low by chance."""


def training_seconds(run: RunRecord) -> list[float]:
    """The seconds of training at each of the run's recorded steps, as many as `run.steps`."""
    found: list[float] = []
    starts, before = list(run.starts), 0.0
    start = starts.pop(0)
    for index, step in enumerate(run.steps):
        while starts and starts[0].time <= step.time:
            start = starts.pop(0)
            before = _seconds_at(run, found, index, start.from_step)
        rows = _rows(start, step.step) - _rows(start, start.from_step)
        found.append(before + rows / step.rows_per_second if step.rows_per_second else before)
    return found


def seconds_to(run: RunRecord, target: Target) -> float | None:
    """The seconds of training until the run had reached a target; None if it has not. A loss is the mean of the latest
    recorded steps, a measure that on the validation rows after an epoch."""
    seconds = training_seconds(run)
    if target.loss is not None:
        losses = [step.loss for step in run.steps]
        for end in range(min(_STEPS, len(losses)), len(losses) + 1):
            if losses and mean(losses[max(0, end - _STEPS) : end]) <= target.loss:
                return seconds[end - 1]
        return None
    assert target.measure is not None
    for epoch in run.epochs:
        if target.is_reached(epoch.validation.get(target.measure)):
            steps = epoch.epoch * run.latest.steps // max(1, run.latest.epochs)
            return _seconds_at(run, seconds, len(run.steps), steps)
    return None


def _seconds_at(run: RunRecord, seconds: list[float], known: int, step: int) -> float:
    """The seconds after so many steps, between the recorded steps beside it, of the first `known`, whose `seconds` are
    given; after the last of these at its rate, which is that since a start."""
    after = next((index for index in range(known) if run.steps[index].step > step), known)
    if not after:
        return 0.0
    last = after - 1
    rows = _rows(run.latest, step) - _rows(run.latest, run.steps[last].step)
    if after < known:
        between = _rows(run.latest, run.steps[after].step) - _rows(run.latest, run.steps[last].step)
        return seconds[last] + (seconds[after] - seconds[last]) * (rows / between if between else 0.0)
    rate = run.steps[last].rows_per_second
    return seconds[last] + (rows / rate if rate else 0.0)


def _rows(start: Start, steps: int) -> int:
    rows = start.rows.get("training", 0)
    of_an_epoch = start.steps // max(1, start.epochs)
    if not of_an_epoch:
        return 0
    epochs, rest = divmod(steps, of_an_epoch)
    return epochs * rows + min(rest * start.global_batch, rows)
