"""How fast ranks learn word embeddings together, and when several beat one: by the bytes that each mode sends.

A step of skip-gram takes milliseconds and touches hundreds of words, so what the ranks send each other decides. Of all
modes it is the vectors of the touched words; they differ in how often, and in whether a rank waits. The number of
touched words follows from how often each is to occur (trainer/embeddings/sampling.py), where words are as frequent as
in usual text: by Zipf's law in the form of Mandelbrot, which is within a fifth of what two English texts show.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

import numpy as np

from common.errors import ExperimentError
from experiments.forecast.communication import Links
from experiments.forecast.rates import Node, rates_of
from experiments.records.finding import find_runs
from experiments.records.runs import read_run
from infra.catalog import Gpu
from trainer.balancing.speed import TimeModel
from trainer.embeddings.sampling import sampling
from trainer.options.optimisation_options import local_steps
from trainer.registry import WORD_MODELS

ROW_WORDS = 126.0
"""Running words in a row of 128 tokens, about: the others end lines."""
MODES = ("sync", "average:20", "async:20")
"""What is compared where the user names no mode."""

_Number = TypeVar("_Number", int, float)

_EXPONENT, _OFFSET = 1.1, 2.7
"""Of Mandelbrot's law."""
_USUAL_WORDS = 2_000_000
"""Of a text, by which words are rare or frequent."""

_MEANS_BYTES, _PULLED_BYTES, _PUSHED_BYTES = 12, 8, 8
"""Of a word besides its vector: in an exchange its id and its number of gradients; its id where it is pulled or
pushed."""
_SYNC_MESSAGES, _ASYNC_MESSAGES = 7, 4
"""One after the other in a step: the sum of what ranks tell, and three of each table; there and back of pull and
push."""
_MESSAGE = 0.1e-3
"""Seconds of a message between CPU ranks by gloo, which copies it and wakes a thread on both sides."""
_TOGETHER = 1.1
"""How much longer a rank's own steps take where there are others: they wait for the slowest of them, and on one machine
they share its memory."""
_HOST_GB = {"sync": 2.7, "average": 1.24, "async": 0.3}
"""GB a second at which a rank's processor packs, sends, receives and adds up vectors. `average` and `async` keep what
the vectors were, and take the difference; in `async` a rank answers others' pulls and pushes, too. These, and the
two numbers above, were fitted to runs of `python -m benchmarks embeddings link`; docs/benchmarks.md tells how far off
they are on a text that they were not fitted to."""
_MOST_ROWS, _MOST_STEPS, _MOST_SIZE = 1 << 14, 1 << 12, 1 << 10

_LAUNCH = 1e-3
"""Seconds in which a GPU's host starts the kernels of a step; an assumption."""
_OFF_GUESSED = 2.0
_PUBLISHED, _PUBLISHED_TFLOPS, _PUBLISHED_SIZE = 43e6 / 8, 15.7, 100
"""Words a second of a GPU by Gupta and Khare 2017 ("BlazingText"), with 8; the TFLOPS of a V100, the newest one of that
year; and the numbers in a vector. Which GPUs and vectors these were is taken for granted."""


@dataclass(frozen=True, kw_only=True)
class WordTask:
    """What is learnt, and how."""

    size: int
    """Numbers in a vector."""
    vocabulary: int
    """Words."""
    rows: int
    """Of 128 words: those of a rank in a step of its own."""
    mode: str
    """As `shoal train` takes it."""
    negatives: int = 5
    subsample: float = 1e-3

    @property
    def local_steps(self) -> int:
        """The steps that a rank makes by itself before it sends anything."""
        return local_steps(self.mode) or 1


@dataclass(frozen=True, kw_only=True)
class WordRate:
    """The time of a rank that learns alone."""

    line: TimeModel
    """Seconds of a step of so many rows, all of it."""
    message: float
    """Seconds of a message, besides its bytes."""
    off: float
    """By what share predictions are expected to be off."""
    source: str
    nodes: tuple[Node, ...] = ()
    """Where it was measured; none for this machine, or where it was not."""


def touched_words(task: WordTask, rows: int) -> tuple[float, float]:
    """How many words so many rows touch as centres, and as contexts or drawn ones."""
    share = 1.0 / (np.arange(1, task.vocabulary + 1) + _OFFSET) ** _EXPONENT
    counts = np.maximum(1.0, share / share.sum() * _USUAL_WORDS)
    rules = sampling(
        counts,
        rows=max(1, round(counts.sum() / ROW_WORDS)),
        window=5,
        negatives=task.negatives,
        subsample=task.subsample,
        power=0.75,
    )
    centres, contexts = (float(-np.expm1(-rows * each).sum()) for each in rules.expected)
    return centres, contexts


def step_bytes(task: WordTask, ranks: int) -> float:
    """Bytes that a rank sends for a step of its own, of which `average` and `async` have several at once."""
    vector = 4 * task.size
    words = sum(touched_words(task, task.rows * task.local_steps)) / task.local_steps
    if task.mode.startswith("async"):  # words are shared out evenly, so it answers as much as it asks for
        return words * (ranks - 1) / ranks * (2 * vector + _PULLED_BYTES + _PUSHED_BYTES)
    return words * (ranks - 1) * (vector + _MEANS_BYTES)


def words_per_second(task: WordTask, rate: WordRate, links: Links) -> float:
    """Running words a second of all ranks together, each of this rate."""
    own, kind = task.local_steps * rate.line.seconds(task.rows), task.mode.partition(":")[0]
    learnt = links.ranks * task.local_steps * task.rows * ROW_WORDS
    if links.ranks == 1:
        return learnt / own
    size = task.local_steps * step_bytes(task, links.ranks)
    messages = _ASYNC_MESSAGES if kind == "async" else _SYNC_MESSAGES
    sending = links.seconds_to_send(size) + messages * max(rate.message, links.latency)
    return learnt / (_TOGETHER * own + sending + 2 * size / (_HOST_GB[kind] * 1e9))


def alone(task: WordTask, rate: WordRate) -> float:
    """Words a second of one rank of this rate."""
    return words_per_second(task, rate, Links(nodes=1, ranks=1, gbits=math.inf))


@dataclass(frozen=True, kw_only=True)
class Beats:
    """From when all ranks are faster than one, if one thing changes, in powers of two; None: not at the end of what is
    looked at."""

    rows: int | None
    """Rows of a rank's step, or more."""
    local_steps: int | None
    """Steps of its own, or more; of `sync` always None."""
    size: int | None
    """Numbers in a vector, or fewer."""
    gbits: float | None
    """Of the slowest link, or more."""


def when_faster(task: WordTask, rate: WordRate, links: Links) -> Beats:
    """From when the ranks together beat one of them that learns with the same batch."""

    def beats(changed: WordTask, by: Links = links) -> bool:
        return words_per_second(changed, rate, by) > alone(changed, rate)

    kind = task.mode.partition(":")[0]
    return Beats(
        rows=_last(lambda rows: beats(replace(task, rows=rows)), _powers(_MOST_ROWS)),
        local_steps=None
        if kind == "sync"
        else _last(lambda steps: beats(replace(task, mode=f"{kind}:{steps}")), _powers(_MOST_STEPS)),
        size=_last(lambda size: beats(replace(task, size=size)), _powers(_MOST_SIZE)[::-1]),
        gbits=_last(
            lambda gbits: beats(task, replace(links, gbits=gbits)), [each / 10 for each in _powers(_MOST_ROWS)]
        ),
    )


def _powers(most: int) -> list[int]:
    """1, 2, 4 ... `most`, downwards."""
    return [1 << power for power in reversed(range(most.bit_length()))]


def _last(holds: Callable[[_Number], bool], values: Sequence[_Number]) -> _Number | None:
    """The last of the first values, one after the other, for which something holds."""
    found = list(takewhile(holds, values))
    return found[-1] if found else None


def task_of_runs(paths: Sequence[Path], mode: str, rows: int | None) -> tuple[WordTask, WordRate]:
    """What the trainings in these folders, and below them, learn, and how fast one rank does that. All of them are of
    one rank and one model of words. `rows` of a rank's step; None: as in the first of them.

    Raises ExperimentError for other runs, which it names.
    """
    runs = [read_run(folder) for folder in find_runs(paths)]
    for run in runs:
        if run.latest.config.get("model") not in WORD_MODELS or run.latest.world_size != 1:
            raise ExperimentError(
                f"{run.folder} is not a training of one rank on words; give outputs of `shoal train --local --model "
                "skipgram --nodes 1`"
            )
    rates, first = rates_of(runs), runs[0]
    (own,) = rates.ranks
    line = TimeModel(own.fixed + rates.others.fixed, own.per_row + rates.others.per_row)
    config = first.latest.config
    task = WordTask(
        size=config["embedding"],
        vocabulary=(first.summary or {})["vocabulary"],
        rows=rows or first.latest.global_batch,
        mode=mode,
        negatives=config["negatives"],
        subsample=config["subsample"],
    )
    return task, WordRate(
        line=line, message=0.0 if rates.nodes else _MESSAGE, off=rates.off, source=rates.source, nodes=rates.nodes
    )


def rate_by_catalogue(gpu: Gpu, size: int) -> WordRate:
    """The rate of a GPU that nobody has measured, by what is published, TFLOPS, and the size of vectors."""
    words = _PUBLISHED * gpu.tflops / _PUBLISHED_TFLOPS * _PUBLISHED_SIZE / size
    return WordRate(
        line=TimeModel(_LAUNCH, ROW_WORDS / words),
        message=0.0,
        off=_OFF_GUESSED,
        source=f"{gpu.name} not measured: 43 million words a second on eight GPUs of 2017 (BlazingText), by TFLOPS",
    )


def rate_together(rates: Sequence[WordRate]) -> WordRate:
    """The rate of ranks that differ in speed, where each gets work by its own."""
    lines = [rate.line for rate in rates]
    return WordRate(
        line=TimeModel(max(line.fixed for line in lines), len(lines) / sum(1.0 / line.per_row for line in lines)),
        message=max(rate.message for rate in rates),
        off=max(rate.off for rate in rates),
        source="; ".join(dict.fromkeys(rate.source for rate in rates)),
    )
