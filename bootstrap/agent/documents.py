"""The documents by which work on nodes is controlled: what is wanted, and what each node has done of it.

The launcher alone may write a request or a cancellation. Nodes write statuses, and so can whoever took over a node. All
are checked when they are read: they hold settings and addresses, never a command.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from ipaddress import AddressValueError, IPv4Address
from typing import Any, Self, TypeVar

from common.errors import DataError
from common.json_values import parse_json_object, require_fields
from corpus.layout import DATASET_NAME, DIGEST_PATTERN
from corpus.reading.s3 import is_s3, place_of
from corpus.stream.stream_settings import StreamSettings
from corpus.text_request import TextRequest

VERSION = 1
"""Of all kinds of document. An agent of another version does nothing but say so."""

REQUESTS, RUNS, NODES, WORK = "requests/", "runs/", "nodes/", "work/"
"""The prefixes of the data bucket: of requests, which nodes cannot write; of runs; of nodes' signs of life; and of what
passes between the jobs of a preprocessing."""
REQUEST_NAME = "request.json"
"""The name of a copy of the request beside a run's results."""
PHASES = ("stage", "staged", "run", "end", "done", "failed")
"""Of a node, in their order: it brings the data; it waits for the others; it trains or reads; it leaves its results;
it has ended; or could not."""

INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
RUN = re.compile(r"[A-Za-z0-9-]{1,40}\.[0-9]{8}T[0-9]{6}-[0-9a-f]{4}")
FINGERPRINT = re.compile(r"[0-9a-f]{12}")
"""The name of a run of the jobs."""
_TOKEN = re.compile(r"[0-9a-f]{8}")
_DATASET = re.compile(rf"datasets/{DIGEST_PATTERN.pattern}/{re.escape(DATASET_NAME)}")
_TEXTS = re.compile(r"[0-9a-f]{12}")
_OPTION = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MOST_BYTES, _MOST_NODES, _MOST_GPUS, MOST_ERROR = 1 << 20, 1024, 64, 1000
_MOST_COUNTED = 1 << 60
_PORTS = range(1024, 65_000)

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, kw_only=True)
class Member:
    """A node of a run. Raises DataError for values that cannot be."""

    instance: str
    address: str
    """Its private IPv4 address."""
    gpus: int
    """A rank each; 0 of a node that only reads."""

    def __post_init__(self) -> None:
        _require(INSTANCE.fullmatch(self.instance), f"{self.instance!r} is not the id of an instance")
        try:
            IPv4Address(self.address)
        except AddressValueError:
            raise DataError(f"{self.address!r} is not the address of a node") from None
        _require(0 <= self.gpus <= _MOST_GPUS, f"gpus is {self.gpus}, but must be 0 to {_MOST_GPUS}")


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What is wanted of a deployment's nodes. Raises DataError for values that cannot be."""

    run: str
    token: str
    """8 hexadecimal digits, others for each launch of a run."""
    members: tuple[Member, ...]
    """Those that train, the first of which serves NFS, and then those that read."""
    share: str | None
    """What serves the folder that all nodes share: `efs` or `nfs`; None where each has its own."""
    options: Mapping[str, tuple[str, ...]]
    """Those of the training that differ from their defaults, each with the words of its values."""
    port: int
    """Of the first node, where ranks meet."""
    dataset: str | None = None
    """An s3:// address; or `texts`, or `stream`."""
    texts: TextRequest | None = None
    texts_name: str | None = None
    """12 hexadecimal digits, which stand for these texts."""
    stream: StreamSettings | None = None
    stop: bool = False
    """Whether the ranks are to stop with a checkpoint."""

    def __post_init__(self) -> None:
        _require(RUN.fullmatch(self.run), f"{self.run!r} is not the name of a run")
        _require(_TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        _require(0 < len(self.members) <= _MOST_NODES, f"a run has 1 to {_MOST_NODES:,} nodes")
        _require(self.members[0].gpus > 0, "the first node has no GPU")
        _require(len({each.instance for each in self.members}) == len(self.members), "a node is named twice")
        _require(self.share in ("efs", "nfs", None), f"share is {self.share!r}, but must be efs or nfs")
        _require(self.port in _PORTS, f"the port {self.port} cannot be used")
        _require(all(map(_OPTION.fullmatch, self.options)), "an option has no valid name")
        learnt = [each for each in (self.dataset, self.texts, self.stream) if each is not None]
        _require(len(learnt) == 1, "a run learns from a dataset, from texts or from a stream")
        if self.dataset is not None:
            there = is_s3(self.dataset) and _DATASET.fullmatch(place_of(self.dataset).key)
            _require(there, f"{self.dataset!r} is not the address of a dataset")
        named = self.texts_name is None if self.texts is None else _TEXTS.fullmatch(self.texts_name or "")
        _require(named, f"{self.texts_name!r} cannot name these texts")

    @property
    def trainers(self) -> tuple[Member, ...]:
        """The nodes that train."""
        return tuple(each for each in self.members if each.gpus)

    def readers_on(self, instance: str) -> list[int]:
        """The numbers of the readers of a node: those that only read share them, or else the first that trains."""
        where = [each.instance for each in self.members if not each.gpus] or [self.members[0].instance]
        count = self.stream.readers if self.stream else 0
        return [reader for reader in range(count) if where[reader % len(where)] == instance]

    def to_json(self) -> str:
        """As JSON."""
        own = {name: value for name, value in vars(self).items() if name not in ("texts", "stream")}
        held = {name: json.loads(value.to_json()) for name in ("texts", "stream") if (value := getattr(self, name))}
        members = [asdict(each) for each in self.members]
        return json.dumps({"version": VERSION, **own, "members": members, **held}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`. Raises DataError for anything else."""
        written = _read(text)
        members, options = written.get("members"), written.get("options")
        if not isinstance(members, list) or not all(isinstance(each, dict) for each in members):
            raise DataError("members is not a list of nodes")
        if not isinstance(options, dict) or not all(map(_are_words, options.values())):
            raise DataError("options have no lists of words")
        values: dict[str, Any] = {
            **written,
            "members": tuple(_made(Member, each) for each in members),
            "options": {name: tuple(words) for name, words in options.items()},
        }
        for name, kind in (("texts", TextRequest), ("stream", StreamSettings)):
            if (held := values.get(name)) is not None:
                values[name] = kind.from_json(json.dumps(held))
        _require_all(cls, values)
        require_fields(cls, {name: value for name, value in values.items() if name not in ("members", "options")})
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class _FlatDocument:
    """A document of plain values."""

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps({"version": VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`. Raises DataError for anything else."""
        return _made(cls, _read(text))


@dataclass(frozen=True, kw_only=True)
class NodeStatus(_FlatDocument):
    """What a node has done of a request. Raises DataError for values that cannot be."""

    token: str
    """Of the request."""
    phase: str
    """One of PHASES."""
    error: str = ""
    """Why it failed: a sentence. Empty where its ranks failed, whose logs tell that."""
    ranks: int | None = None
    """The exit status of its ranks, if they failed."""
    read: int = 0
    """Bytes of the texts that it has read, decompressed."""
    lines: int = 0
    """When all texts are read: the lines, how many of them are malformed, and how many have a text without words."""
    malformed: int = 0
    empty: int = 0
    step: int | None = None
    """The latest in the run's record; None of a node that does not train, or where nothing is recorded yet."""
    attempt: int | None = None
    """How often the ranks of the run were started, resumed trainings included."""
    gpu_use: int | None = None
    """Percent of the time in which its GPUs compute, their mean; None where the node cannot tell."""

    def __post_init__(self) -> None:
        _require(_TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        _require(self.phase in PHASES, f"{self.phase!r} is not a phase")
        _require(len(self.error) <= MOST_ERROR, "its error is too long")
        counts = (self.read, self.lines, self.malformed, self.empty, self.step or 0, self.attempt or 0)
        _require(all(0 <= each < _MOST_COUNTED for each in counts), "a count cannot be")
        _require(self.gpu_use is None or 0 <= self.gpu_use <= 100, "the use of its GPUs cannot be")

    @property
    def fails(self) -> bool:
        """Whether it cannot go on, so that no other node can."""
        return bool(self.error) or self.ranks is not None

    @property
    def over(self) -> bool:
        """Whether the node does nothing more for the request."""
        return self.phase in ("done", "failed")

    def has_come_to(self, phase: str) -> bool:
        """Whether it is in this phase, or was before; one that failed has come nowhere."""
        return self.phase != "failed" and PHASES.index(self.phase) >= PHASES.index(phase)


@dataclass(frozen=True, kw_only=True)
class Cancellation(_FlatDocument):
    """That a launch of the jobs is to end. Raises DataError for values that cannot be."""

    run: str
    token: str
    """8 hexadecimal digits, others for each launch of a run."""

    def __post_init__(self) -> None:
        _require(FINGERPRINT.fullmatch(self.run), f"{self.run!r} is not the name of a run")
        _require(_TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")

    @property
    def key(self) -> str:
        """Where its launcher writes it."""
        return f"{REQUESTS}{self.run}.cancelled.json"

    @property
    def answer_key(self) -> str:
        """Where the step that ran answers it."""
        return f"{WORK}{self.run}/cancelled.json"


@dataclass(frozen=True, kw_only=True)
class CancellationAnswer(_FlatDocument):
    """What a step has done of a cancellation. Raises DataError for values that cannot be."""

    token: str
    """Of the launch."""
    applications: int = 0
    """How many applications of YARN it has ended."""
    error: str = ""
    """Why some may go on: a sentence."""

    def __post_init__(self) -> None:
        _require(_TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        _require(0 <= self.applications < _MOST_COUNTED, "a count cannot be")
        _require(len(self.error) <= MOST_ERROR, "its error is too long")


def token_in(text: str) -> str | None:
    """The token of a request of any version; None where it has none."""
    try:
        token = str(parse_json_object(text[:_MOST_BYTES]).get("token"))
    except DataError:
        return None
    return token if _TOKEN.fullmatch(token) else None


def step_name(run: str, name: str) -> str:
    """The name of a step of the jobs on the cluster: in EMR's list of steps and, for a job, in YARN's list."""
    return f"shoal {run}: {name}"


def request_key(deployment: str) -> str:
    """The key of the request to a deployment's nodes."""
    return f"{REQUESTS}{deployment}.json"


def status_key(instance: str) -> str:
    """The key of a node's status."""
    return f"{NODES}{instance}.run"


def _read(text: str) -> dict[str, Any]:
    """A document's fields, without its version."""
    if len(text) > _MOST_BYTES:
        raise DataError(f"it has more than {_MOST_BYTES:,} characters")
    written = parse_json_object(text)
    version = written.pop("version", None)
    if version != VERSION:
        raise DataError(f"it is of version {version!r}, and this is Shoal's {VERSION}; deploy again")
    return written


def _made(kind: type[_Kind], written: Mapping[str, Any]) -> _Kind:
    require_fields(kind, written)
    _require_all(kind, written)
    return kind(**written)


def _require_all(kind: type[Any], values: Mapping[str, Any]) -> None:
    """Raise DataError where a field without a default is missing."""
    for field in fields(kind):
        if field.default is MISSING and field.name not in values:
            raise DataError(f"{field.name} is missing")


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _require(holds: object, sentence: str) -> None:
    if not holds:
        raise DataError(sentence)
