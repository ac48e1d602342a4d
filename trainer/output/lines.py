"""The lines of record.jsonl: a class for each kind, which the trainer writes and every reader is given.

A line is a JSON object that has `kind`, the class's name in lower case, `time`, and the other fields of the class; of a
Test and of an End the measures and the summary lie beside them. Readers leave out a line that is not what it should be:
a killed process, or a full disk, may leave half a line, and another version writes other fields.

A resumed run appends, beginning with another Start; steps after its `from_step` are then there twice.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Self, get_args, get_type_hints

from common.errors import DataError
from common.json_values import parse_json_object

_LATEST = 2.5e11
"""Seconds from 1970 to about the year 9900: no later one is a date."""


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 53


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_seconds(value: Any) -> bool:
    return _is_number(value) and value >= 0


def _each(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(is_valid, value))


Count = Annotated[int, _is_count]
Number = Annotated[float, _is_number]
Seconds = Annotated[float, _is_seconds]
Counts = Annotated[Sequence[int], _each(_is_count)]
Rates = Annotated[Sequence[float], _each(_is_seconds)]
Text = Annotated[str, lambda value: isinstance(value, str)]
Object = Annotated[Mapping[str, Any], lambda value: isinstance(value, dict)]


@dataclass(frozen=True, kw_only=True)
class Line:
    """What all lines have."""

    rest: ClassVar[str | None] = None
    """The field whose values lie beside the others in the line."""

    time: Annotated[float, lambda value: _is_seconds(value) and value < _LATEST] = field(
        default_factory=lambda: round(time.time(), 3)
    )
    """Since 1970."""

    def plain(self) -> dict[str, Any]:
        """The line as JSON has it."""
        content = {"kind": type(self).__name__.lower(), **vars(self)}
        beside = content.pop(self.rest) if self.rest else {}
        return {**content, **beside}


@dataclass(frozen=True, kw_only=True)
class Search(Line):
    """The beginning of a search of settings (`--model auto`); its trials follow, and then the run of the settings that
    it chose."""

    limit: Seconds
    """All that it may take."""
    rows: Count
    """To train on in each fold."""
    folds: Count


@dataclass(frozen=True, kw_only=True)
class Trial(Line):
    """A trial of settings: the means over the blocks of the rows that were held out (search/trials.py), null where the
    model learnt nothing, or the time was over."""

    trial: Count
    """From 1."""
    settings: Object
    """Options that are not the defaults of the model."""
    measures: Object
    """`score`, by which trials are compared, the `metric` that was asked for, `log_loss` and `log_temperature`."""
    folds: Count
    """That were measured; the others were not where it was worse already."""
    seconds: Seconds
    best: Annotated[bool, lambda value: isinstance(value, bool)]
    """Whether it is the best one so far."""


@dataclass(frozen=True, kw_only=True)
class Start(Line):
    """The beginning of a run, or where it was resumed."""

    config: Object
    world_size: Annotated[int, lambda value: _is_count(value) and value >= 1]
    devices: Annotated[Sequence[str], _each(lambda value: isinstance(value, str))]
    """A name a rank."""
    rows: Annotated[Mapping[str, int], lambda value: isinstance(value, dict) and all(map(_is_count, value.values()))]
    """Of `training`, `validation` and `test`."""
    digest: Text
    """The dataset's."""
    global_batch: Annotated[int, lambda value: _is_count(value) and value >= 1]
    epochs: Annotated[int, lambda value: _is_count(value) and value >= 1]
    steps: Count
    """Of the whole run."""
    from_step: Count
    """0, or where it was resumed."""
    own_rates: Rates
    """Rows/s, a rank."""
    precision: Text = ""


@dataclass(frozen=True, kw_only=True)
class Step(Line):
    """A step of the run: every `record_every` steps, but at most one in half a second, so that quick steps make no
    large file, and one at least in five seconds; the first and the last step after each start always; with
    `record_every` 1 all of them."""

    epoch: Count
    step: Count
    """Of the run; both from 1."""
    loss: Number
    """The mean over the global batch."""
    rows_per_second: Annotated[float | None, lambda value: value is None or _is_seconds(value)] = None
    balanced: Annotated[float | None, lambda value: value is None or _is_seconds(value)] = None
    """Both since the start, evaluation left out."""
    split: Counts
    """Rows, a rank, as they were computed."""
    compute_seconds: Rates
    """A rank's own, without waiting for others."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Line):
    """A checkpoint that was written, and the seconds that this took."""

    step: Count
    file: Text
    seconds: Seconds


@dataclass(frozen=True, kw_only=True)
class Waiting(Line):
    """A wait for text after a step: 0 seconds where it began, and what it took at its end."""

    step: Count
    seconds: Seconds


@dataclass(frozen=True, kw_only=True)
class Note(Line):
    """A problem that did not end the run, such as a checkpoint that could not be written, a share that did not fit into
    a rank's memory, a rank that was lost before this start, or weights that differed between ranks and were made equal
    (once after a start, with the difference in the first such epoch)."""

    text: Text


@dataclass(frozen=True, kw_only=True)
class Epoch(Line):
    """The end of an epoch."""

    epoch: Count
    loss: Number
    validation: Object = field(default_factory=dict)
    """The loss and the measures of classification/metrics.py."""


@dataclass(frozen=True, kw_only=True)
class Test(Line):
    """The measures on the test rows, at the end, and `confusion`: `classes`, their names by label, and `counts`, where
    `counts[i][j]` rows have the label i and the prediction j. `temperature` and `threshold` are fitted on the
    validation rows (classification/calibration.py); `log_loss` is that of the calibrated probabilities of the labels,
    `uncalibrated_log_loss` that at a temperature of 1."""

    __test__: ClassVar = False  # no test of pytest's
    rest = "measures"

    epoch: Count
    """The last one."""
    loss: Number
    measures: Object = field(default_factory=dict)

    @classmethod
    def of(cls, epoch: int, tested: Mapping[str, Any]) -> Self:
        """The line of measures among which is the loss."""
        return cls(epoch=epoch, loss=tested["loss"], measures={k: v for k, v in tested.items() if k != "loss"})


@dataclass(frozen=True, kw_only=True)
class End(Line):
    """The end of a run, with the content of summary.json.

    Of the whole run: `accuracy`, `balanced_accuracy`, `macro_f1`, `majority`, for two classes also `f1_positive` and
    `f1_negative`, and `log_loss`, `uncalibrated_log_loss`, `temperature`, `threshold` and `confusion` (on the test
    rows, at the end; null where a run was stopped; more than two classes have a threshold of 0.5), `validation` (after
    the latest epoch), `stopped`, `steps`, `rows_seen`, `seconds` (of training, checkpoints included),
    `samples_per_second`; and its settings: `rows` (to train on), `global_batch`, `epochs`, `world_size`, `precision`,
    `positive_weight` (1 for more than two classes), `digest`. Since its latest start:

    - `own_rates`, rows/s: the higher of two measurements of each rank; `share_of_ideal`, rows a second over their sum;
      `balanced`, the same over the sum of the rates that the ranks had in the run; `lost`, where the rest of it went
      (`imbalance`, `communication`, `data`, `checkpoints`, `rest`; with `balanced` they add up to 1). These three are
      null without a step.
    - `split` (of a full step, as it was last), and `rows_of_ranks`.
    - `bytes_a_step`: what a rank sends to the others for a step of its own, with what it pulls of them (`--mode
      async`); of a sum over the ranks what a ring sends; null without a step.
    - `profile`: how many seconds each rank spent in each phase of its steps (clock.py); what a rank waits for others is
      in `all_reduce`.
    - `times`, the first rank's seconds, by what they were spent on (`loading`, `search` for settings, `rates`,
      `waiting` for text that is to come, `training` without its `checkpoints`, `evaluation`, `other`), which add up to
      `wall`, the time from where the ranks had met.
    - `search`: of a run that began with one, the `verdict`, a sentence, and the `trials` as their lines have them.

    `shoal train --deployment` adds `run` (its folder), `nodes`, `cost` (dollars), and, where that was predicted,
    `launch` (what each stage of the command took, and what it was to take).
    """

    rest = "summary"

    summary: Object


def _checks(kind: type[Line]) -> Mapping[str, Callable[[Any], bool]]:
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: get_args(hints[each.name])[1] for each in fields(kind) if each.name != kind.rest}


_KINDS = {kind.__name__.lower(): (kind, _checks(kind)) for kind in Line.__subclasses__()}


def parse_line(line: bytes) -> Line | None:
    """What a line tells; None where it is not what it should be."""
    try:
        content = parse_json_object(line)
        kind, checks = _KINDS[content.pop("kind")]
    except (DataError, KeyError, TypeError):
        return None
    known = {name: content.pop(name) for name in checks if name in content}
    if "time" not in known or not all(checks[name](value) for name, value in known.items()):
        return None
    try:
        return kind(**(known | ({kind.rest: content} if kind.rest else {})))
    except TypeError:  # a field is missing
        return None
