"""The documents by which work on nodes is controlled: what is wanted, who does it, and what each node has done of it.

The launcher alone may write a request or a cancellation. Nodes write attempts and statuses, and so can whoever took
over a node. All are checked when they are read: they hold settings and addresses, never a command.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

from common.errors import DataError
from common.json_values import made, parse_json_object
from corpus.layout import DATASET_NAME, DIGEST_PATTERN
from corpus.reading.s3 import is_s3, place_of
from corpus.stream.stream_settings import StreamSettings
from corpus.text_request import TextRequest

VERSION = 2
"""Of all kinds of document. An agent of another version does nothing but say so."""

REQUESTS, RUNS, NODES, WORK = "requests/", "runs/", "nodes/", "work/"
"""The prefixes of the data bucket: of requests, which nodes cannot write; of runs; of nodes' signs of life; and of what
passes between the jobs of a preprocessing."""
REQUEST_NAME = "request.json"
"""The name of a copy of the request beside a run's results."""
END_NAME, ATTEMPTS = "ended.json", "attempts/"
"""There, too: how the run has ended, and the folder of its attempts."""
PHASES = ("wait", "stage", "staged", "run", "end", "done", "failed")
"""Of a node, in their order: it waits for an attempt; it brings the data; it waits for the others; it trains or reads;
it leaves its results; it has ended; or could not."""
OUTCOMES = ("finished", "stopped", "failed")
"""Of a run."""
_NUMBER_DIGITS = 6

LOG = re.compile(r"(?P<program>(node|reader)-[0-9]{1,6})(-attempt-(?P<attempt>[0-9]{1,6}))?\.log")
"""The name of a log beside a run's results."""
INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
RUN = re.compile(r"[A-Za-z0-9-]{1,40}\.[0-9]{8}T[0-9]{6}-[0-9a-f]{4}")
FINGERPRINT = re.compile(r"[0-9a-f]{12}")
"""The name of a run of the jobs."""
TOKEN = re.compile(r"[0-9a-f]{8}")
_DATASET = re.compile(rf"datasets/{DIGEST_PATTERN.pattern}/{re.escape(DATASET_NAME)}")
_TEXTS = re.compile(r"[0-9a-f]{12}")
_OPTION = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MOST_BYTES, MOST_NODES, MOST_GPUS, MOST_ERROR = 1 << 20, 1024, 64, 1000
MOST_COUNTED = 1 << 60
_OF_A_COMMAND = ("resume", "force")
"""Options that say only what an output may hold."""
_OF_A_LAUNCH = ("nodes", "run", "token", "stop", "keep", "max_dollars", "until", "ready", "min_nodes")
"""Fields that say nothing of the work."""


@dataclass(frozen=True, kw_only=True)
class JsonDocument:
    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`. Raises DataError for anything else."""
        if len(text) > _MOST_BYTES:
            raise DataError(f"it has more than {_MOST_BYTES:,} characters")
        written = parse_json_object(text)
        version = written.pop("version", None)
        if version != VERSION:
            raise DataError(f"it is of version {version!r}, and this is Shoal's {VERSION}; deploy again")
        return made(cls, written)


@dataclass(frozen=True, kw_only=True)
class RunRequest(JsonDocument):
    """What is wanted of a deployment's nodes. Raises DataError for values that cannot be."""

    run: str
    token: str
    """8 hexadecimal digits, others for each launch of a run."""
    trainers: int
    """How many nodes are to train."""
    readers: int = 0
    """How many nodes are to read for them."""
    min_nodes: int = 1
    """The fewest nodes that train, where some are lost."""
    nodes: tuple[str, ...] | None = None
    """The ids of those that may take part; None: all that have this channel."""
    share: str | None
    """What serves the folder that all nodes share: `efs` or `nfs`; None where each has its own."""
    options: Mapping[str, tuple[str, ...]]
    """Those of the training that differ from their defaults, each with the words of its values."""
    dataset: str | None = None
    """An s3:// address, or a key of the channel; or `texts`, or `stream`."""
    texts: TextRequest | None = None
    texts_name: str | None = None
    """12 hexadecimal digits, which stand for these texts."""
    stream: StreamSettings | None = None
    stop: bool = False
    """Whether the ranks are to stop with a checkpoint."""
    keep: bool = False
    """Whether the nodes stay when the run has ended, and nobody ends them before they were idle for long."""
    max_dollars: float | None = None
    """The most that its nodes may cost."""
    until: float | None = None
    """When its ranks are to stop with a checkpoint, in seconds since 1970, so that its nodes do not cost more."""
    ready: bool = False
    """Whether its nodes have booted; before that the request only says whom they are for."""

    def __post_init__(self) -> None:
        require(RUN.fullmatch(self.run), f"{self.run!r} is not the name of a run")
        require(TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        require(0 < self.trainers <= MOST_NODES, f"a run has 1 to {MOST_NODES:,} nodes")
        require(0 <= self.readers <= MOST_NODES, f"a run has at most {MOST_NODES:,} nodes that read")
        require(0 < self.min_nodes <= self.trainers, f"min_nodes must be 1 to {self.trainers}")
        require(all(map(INSTANCE.fullmatch, self.nodes or ())), "nodes has what is no id of a node")
        for amount in (self.max_dollars, self.until):
            require(amount is None or 0 < amount < MOST_COUNTED, "an amount of dollars or a time cannot be")
        require(self.share in ("efs", "nfs", None), f"share is {self.share!r}, but must be efs or nfs")
        require(all(map(_OPTION.fullmatch, self.options)), "an option has no valid name")
        learnt = [each for each in (self.dataset, self.texts, self.stream) if each is not None]
        require(len(learnt) == 1, "a run learns from a dataset, from texts or from a stream")
        if self.dataset is not None:
            key = place_of(self.dataset).key if is_s3(self.dataset) else self.dataset
            require(_DATASET.fullmatch(key), f"{self.dataset!r} is not the address of a dataset")
        named = self.texts_name is None if self.texts is None else _TEXTS.fullmatch(self.texts_name or "")
        require(named, f"{self.texts_name!r} cannot name these texts")

    def at(self, time: float) -> Self:
        """As it is wanted at a time in seconds since 1970."""
        return replace(self, stop=self.stop or (self.until is not None and time >= self.until))

    @property
    def end_key(self) -> str:
        """Where a node writes that the run has ended."""
        return f"{RUNS}{self.run}/{END_NAME}"

    def same_work(self, other: "RunRequest") -> bool:
        """Whether both ask for the same training of the same data, as the same command does when it is typed twice."""
        here = {name: words for name, words in self.options.items() if name not in _OF_A_COMMAND}
        options = {name: tuple(word.replace(self.run, other.run) for word in words) for name, words in here.items()}
        options |= {name: words for name, words in other.options.items() if name in _OF_A_COMMAND}
        state = {name: getattr(other, name) for name in _OF_A_LAUNCH}
        return replace(self, options=options, **state) == other


@dataclass(frozen=True, kw_only=True)
class RequestQueue(JsonDocument):
    """The runs that are wanted of a deployment's nodes, in their order: they do the first that has not ended."""

    runs: tuple[RunRequest, ...]

    def __post_init__(self) -> None:
        sources = [each for run in self.runs if run.texts for each in run.texts.sources]
        require(all(is_s3(each.address) for each in sources), "a source is not in S3")


@dataclass(frozen=True, kw_only=True)
class Cancellation(JsonDocument):
    """That a launch of the jobs is to end; its step answers by the same. Raises DataError for values that cannot be."""

    run: str
    token: str
    """8 hexadecimal digits, others for each launch of a run."""
    error: str = ""
    """Of a step: why some of its work may go on."""

    def __post_init__(self) -> None:
        require(FINGERPRINT.fullmatch(self.run), f"{self.run!r} is not the name of a run")
        require(TOKEN.fullmatch(self.token), f"{self.token!r} is not a token")
        require(len(self.error) <= MOST_ERROR, "its error is too long")

    @property
    def key(self) -> str:
        return f"{REQUESTS}{self.run}.cancelled.json"

    @property
    def answer_key(self) -> str:
        return f"{WORK}{self.run}/cancelled.json"


def tokens_in(text: str) -> list[str]:
    """The tokens of a queue of requests of any version."""
    try:
        runs = parse_json_object(text[:_MOST_BYTES]).get("runs")
    except DataError:
        return []
    tokens = [str(each.get("token")) for each in runs if isinstance(each, dict)] if isinstance(runs, list) else []
    return list(filter(TOKEN.fullmatch, tokens))


def step_name(run: str, name: str) -> str:
    """The name of a step of the jobs on the cluster: in EMR's list of steps and, for a job, in YARN's list."""
    return f"shoal {run}: {name}"


def request_key(deployment: str) -> str:
    return f"{REQUESTS}{deployment}.json"


def attempts_prefix(run: str) -> str:
    return f"{RUNS}{run}/{ATTEMPTS}"


def attempt_key(run: str, number: int) -> str:
    """The key of an attempt; keys are in the order of numbers."""
    return f"{attempts_prefix(run)}{number:0{_NUMBER_DIGITS}}.json"


def attempt_number(key: str) -> int:
    """The number of the attempt with this key; 0 for another key."""
    name = key.rpartition("/")[2].removesuffix(".json")
    return int(name) if name.isdecimal() and len(name) == _NUMBER_DIGITS else 0


def log_name(program: str, attempt: int) -> str:
    """The name of the log of a program, `node-K` or `reader-K`, in an attempt: in a later one another node may run it,
    which has nothing of the log before."""
    return f"{program}.log" if attempt == 1 else f"{program}-attempt-{attempt}.log"


def beat_key(instance: str) -> str:
    """The key of what a node that takes part in a run changes every few seconds."""
    return f"{NODES}{instance}.beat"


def status_key(instance: str) -> str:
    return f"{NODES}{instance}.run"


def require(holds: object, sentence: str) -> None:
    """Raise DataError with a sentence unless something holds."""
    if not holds:
        raise DataError(sentence)
