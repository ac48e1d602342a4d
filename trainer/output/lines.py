"""Lines of record.jsonl. Each kind of line is a class; the trainer writes objects of it, and all readers parse them.

A line is a JSON object with `kind` (the class name in lower case), `time`, and the other fields of the class. The
measures of a Test and the summary of an End are fields of the line itself. Readers skip an invalid line, because a
killed process or a full disk can leave half a line, and a different version can write different fields.

A resumed run appends lines, beginning with a second Start. Steps after the `from_step` of this Start then appear twice.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Self

from common.checked_values import Must, within
from common.errors import DataError
from common.json_values import from_json, parse_json_object

_LATEST = 2.5e11
"""Unix timestamp of about the year 9900; later ones are invalid."""
_MOST = (1 << 53) - 1

Count = Annotated[int, within(0, _MOST)]
PositiveCount = Annotated[int, within(1, _MOST)]
Seconds = Annotated[float, Must("at least 0", lambda value: value >= 0)]


@dataclass(frozen=True, kw_only=True)
class Line:
    """Base class of all lines."""

    rest: ClassVar[str | None] = None
    """Name of a field with a mapping, if any. Its entries are stored as fields of the line itself."""

    time: Annotated[float, within(0, _LATEST)] = field(default_factory=lambda: round(time.time(), 3))
    """Unix timestamp."""

    def plain(self) -> dict[str, Any]:
        """Return the line as a JSON object."""
        content = {"kind": type(self).__name__.lower(), **vars(self)}
        beside = content.pop(self.rest) if self.rest else {}
        return {**content, **beside}


@dataclass(frozen=True, kw_only=True)
class Start(Line):
    """First start of a run, or start of a resumed run."""

    config: dict[str, Any]
    """Options of the run."""
    world_size: PositiveCount
    """Number of ranks."""
    devices: tuple[str, ...]
    """Device name of each rank."""
    rows: Mapping[str, Count]
    """Number of rows in `training`, `validation` and `test`."""
    digest: str
    """Digest of the dataset."""
    global_batch: PositiveCount
    """Number of rows in a global batch."""
    epochs: PositiveCount
    """Number of epochs."""
    steps: Count
    """Number of steps of the whole run."""
    from_step: Count
    """Step from which the run was resumed, or 0."""
    own_rates: tuple[Seconds, ...]
    """Own rate of each rank, in rows per second."""
    precision: str = ""
    """Precision of the computation, such as `bfloat16`."""


@dataclass(frozen=True, kw_only=True)
class Step(Line):
    """Step of the run. Recorded steps are at least half a second apart, except the first and the last of each start."""

    epoch: Count
    """Epoch of the step, from 1."""
    step: Count
    """Number of the step in the run, from 1."""
    loss: float
    """Mean loss over the global batch."""
    rows_per_second: Seconds | None = None
    """Rows per second since the start, without evaluation."""
    balanced: Seconds | None = None
    """Field `balanced` of summary.json, up to this step."""
    split: tuple[Count, ...]
    """Number of rows that each rank computed."""
    compute_seconds: tuple[Seconds, ...]
    """Compute time of each rank in seconds, without waits for other ranks."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Line):
    """Checkpoint that was written."""

    step: Count
    """Number of steps before the checkpoint."""
    file: str
    """Path below the output folder."""
    seconds: Seconds
    """Duration of writing."""


@dataclass(frozen=True, kw_only=True)
class Waiting(Line):
    """Wait of the ranks for text: one line when it starts, and one when it ends."""

    step: Count
    """Number of steps before the wait."""
    seconds: Seconds
    """Duration of the wait; 0 when it starts."""


@dataclass(frozen=True, kw_only=True)
class Note(Line):
    """Problem that did not end the run, such as a failed checkpoint, a share that did not fit into memory, or a lost
    rank. If the weights differ between ranks, one note per start states the first difference."""

    text: str
    """One sentence."""


@dataclass(frozen=True, kw_only=True)
class Epoch(Line):
    """End of an epoch."""

    epoch: Count
    """Number of the epoch, from 1."""
    loss: float
    """Mean training loss of the epoch."""
    validation: dict[str, Any] = field(default_factory=dict)
    """Loss and metrics on the validation rows."""


@dataclass(frozen=True, kw_only=True)
class Test(Line):
    """Metrics on the test rows at the end of the run. The line also has the fields of `Metrics` (summary.py)."""

    __test__: ClassVar = False  # not a pytest class
    rest = "measures"

    epoch: Count
    """Number of the last epoch."""
    loss: float
    """Mean loss on the test rows."""
    measures: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, epoch: int, tested: Mapping[str, Any]) -> Self:
        """Return the line for the measures after `epoch` epochs. `tested` also contains `loss`."""
        return cls(epoch=epoch, loss=tested["loss"], measures={k: v for k, v in tested.items() if k != "loss"})


@dataclass(frozen=True, kw_only=True)
class End(Line):
    """End of a run. The line has the fields of summary.json (summary.py)."""

    rest = "summary"

    summary: dict[str, Any]


_KINDS = {kind.__name__.lower(): (kind, {each.name for each in fields(kind)}) for kind in Line.__subclasses__()}


def parse_line(line: bytes) -> Line | None:
    """Return the object for a line of the record; None if the line is invalid."""
    try:
        content = parse_json_object(line)
        kind, names = _KINDS[content.pop("kind")]
        known = {name: content.pop(name) for name in names - {kind.rest} if name in content}
        return from_json(kind, known | ({kind.rest: content} if kind.rest else {})) if "time" in known else None
    except (DataError, KeyError, TypeError):
        return None
