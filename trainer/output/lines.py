"""Lines of record.jsonl: one class for each kind, which the trainer writes and all readers use.

A line is a JSON object with `kind`, the class name in lower case, `time`, and the other fields of the class. The
measures of a Test and the summary of an End are fields of the line itself. Readers skip an invalid line: a killed
process or a full disk may leave half a line, and another version writes other fields.

A resumed run appends, beginning with another Start. Steps after its `from_step` then appear twice.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Self, get_args, get_type_hints

from common.errors import DataError
from common.json_values import parse_json_object

_LATEST = 2.5e11
"""Unix timestamp of about the year 9900; later ones are invalid."""


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
    """Base class of all lines."""

    rest: ClassVar[str | None] = None
    """Name of the field that is a mapping, and is stored as fields of the line itself."""

    time: Annotated[float, lambda value: _is_seconds(value) and value < _LATEST] = field(
        default_factory=lambda: round(time.time(), 3)
    )
    """Unix timestamp."""

    def plain(self) -> dict[str, Any]:
        """Return the line as a JSON object."""
        content = {"kind": type(self).__name__.lower(), **vars(self)}
        beside = content.pop(self.rest) if self.rest else {}
        return {**content, **beside}


@dataclass(frozen=True, kw_only=True)
class Search(Line):
    """Start of a search of settings (`--model auto`). Its trials follow, then the run with the best settings."""

    limit: Seconds
    """Time limit of the whole search."""
    rows: Count
    """Training rows of each fold."""
    folds: Count


@dataclass(frozen=True, kw_only=True)
class Trial(Line):
    """Trial of settings, measured on held-out rows (search/trials.py)."""

    trial: Count
    """Number of the trial, from 1."""
    settings: Object
    """Options that differ from the defaults of the model."""
    measures: Object
    """`score`, by which trials are compared, the requested `metric`, `log_loss` and `log_temperature`.

    Each is a mean over the blocks of held-out rows. It is null if the model learnt nothing, or if the time was over.
    """
    folds: Count
    """Number of measured folds. A trial that is already worse skips the others."""
    seconds: Seconds
    best: Annotated[bool, lambda value: isinstance(value, bool)]
    """True if it is the best trial so far."""


@dataclass(frozen=True, kw_only=True)
class Start(Line):
    """Start of a run, or of a resumed run."""

    config: Object
    world_size: Annotated[int, lambda value: _is_count(value) and value >= 1]
    devices: Annotated[Sequence[str], _each(lambda value: isinstance(value, str))]
    """Device name of each rank."""
    rows: Annotated[Mapping[str, int], lambda value: isinstance(value, dict) and all(map(_is_count, value.values()))]
    """Number of rows in `training`, `validation` and `test`."""
    digest: Text
    """Digest of the dataset."""
    global_batch: Annotated[int, lambda value: _is_count(value) and value >= 1]
    epochs: Annotated[int, lambda value: _is_count(value) and value >= 1]
    steps: Count
    """Number of steps of the whole run."""
    from_step: Count
    """Step from which the run was resumed, or 0."""
    own_rates: Rates
    """Own rate of each rank, in rows/s."""
    precision: Text = ""


@dataclass(frozen=True, kw_only=True)
class Step(Line):
    """Step of the run.

    Every `record_every` steps are recorded, but at least half a second apart, so that quick steps make no large file.
    Slow steps are recorded at least every five seconds. The first and last step after each start are always recorded.
    With `record_every` 1, all steps are recorded.
    """

    epoch: Count
    step: Count
    """Step of the run. Epoch and step count from 1."""
    loss: Number
    """Mean loss over the global batch."""
    rows_per_second: Annotated[float | None, lambda value: value is None or _is_seconds(value)] = None
    balanced: Annotated[float | None, lambda value: value is None or _is_seconds(value)] = None
    """Share of the ideal time. Both values are since the start, without evaluation."""
    split: Counts
    """Computed rows of each rank."""
    compute_seconds: Rates
    """Own compute time of each rank, without waiting for others."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Line):
    """Written checkpoint, and the seconds that writing took."""

    step: Count
    file: Text
    seconds: Seconds


@dataclass(frozen=True, kw_only=True)
class Waiting(Line):
    """Wait for text after a step: 0 seconds when it starts, the whole duration when it ends."""

    step: Count
    seconds: Seconds


@dataclass(frozen=True, kw_only=True)
class Note(Line):
    """Problem that did not end the run, such as a failed checkpoint, a share that did not fit into memory, or a lost
    rank.

    Different weights on different ranks are noted once after a start, with the difference in the first such epoch.
    """

    text: Text


@dataclass(frozen=True, kw_only=True)
class Epoch(Line):
    """End of an epoch."""

    epoch: Count
    loss: Number
    validation: Object = field(default_factory=dict)
    """Loss and measures of classification/metrics.py."""


@dataclass(frozen=True, kw_only=True)
class Test(Line):
    """Measures on the test rows at the end of the run.

    `confusion` has `classes`, the names by label, and `counts`: `counts[i][j]` rows have label i and prediction j.
    `temperature` and `threshold` are fitted on the validation rows (classification/calibration.py). `log_loss` is that
    of the calibrated probabilities of the labels, `uncalibrated_log_loss` that at temperature 1.
    """

    __test__: ClassVar = False  # not a pytest class
    rest = "measures"

    epoch: Count
    """Last epoch."""
    loss: Number
    measures: Object = field(default_factory=dict)

    @classmethod
    def of(cls, epoch: int, tested: Mapping[str, Any]) -> Self:
        """Return the line for measures that include the loss."""
        return cls(epoch=epoch, loss=tested["loss"], measures={k: v for k, v in tested.items() if k != "loss"})


@dataclass(frozen=True, kw_only=True)
class End(Line):
    """End of a run, with the content of summary.json.

    These fields are about the whole run:

    - Measures on the test rows, null if the run was stopped: `accuracy`, `balanced_accuracy`, `macro_f1`, `majority`,
      `log_loss`, `uncalibrated_log_loss`, `temperature`, `threshold` (0.5 for more than two classes), `confusion`, and
      for two classes `f1_positive` and `f1_negative`.
    - Course of the run: `validation` (measures after the latest epoch), `stopped`, `steps`, `rows_seen`, `seconds` (of
      training, including checkpoints), `samples_per_second`.
    - Settings: `rows` (to train on), `global_batch`, `epochs`, `world_size`, `precision`, `positive_weight` (1 for more
      than two classes), `digest`.
    - `search`, if the run began with a search: the `verdict`, a sentence, and the `trials`, in the format of their
      lines.

    These fields are about the time since the latest start:

    - `own_rates`, rows/s: the higher of two measurements of each rank.
    - `share_of_ideal`: rows per second divided by the sum of `own_rates`; null without a step.
    - `balanced`: rows per second divided by the sum of the rates that the ranks had during the run; null without a
      step.
    - `lost`: shares of the remaining time by reason (`imbalance`, `communication`, `data`, `checkpoints`, `rest`). With
      `balanced` they add up to 1. Null without a step.
    - `split`: the latest split of a full step; and `rows_of_ranks`.
    - `bytes_a_step`: the bytes that a rank sends to the others per own step, including pulled rows (`--mode async`). An
      all-reduce counts as a ring. Null without a step.
    - `profile`: each rank's seconds in each phase of its steps (clock.py). The wait for other ranks is in `all_reduce`.
    - `times`: the first rank's seconds by activity: `loading`, `search`, `rates`, `waiting` (for text), `training`
      (without `checkpoints`), `checkpoints`, `evaluation`, `other`. They add up to `wall`, the time since the
      rendezvous.

    `shoal train --deployment` adds `run` (its folder), `nodes`, `cost` (dollars) and, if predicted, `launch` (predicted
    and measured time of each stage of the command).
    """

    rest = "summary"

    summary: Object


def _checks(kind: type[Line]) -> Mapping[str, Callable[[Any], bool]]:
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: get_args(hints[each.name])[1] for each in fields(kind) if each.name != kind.rest}


_KINDS = {kind.__name__.lower(): (kind, _checks(kind)) for kind in Line.__subclasses__()}


def parse_line(line: bytes) -> Line | None:
    """Parse a line; return None if it is invalid."""
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
