"""The documents by which work on nodes is controlled: what is wanted, who does it, and what each node has done of it.

The launcher alone may write a request or a cancellation. Nodes write attempts and statuses, and so can whoever took
over a node. All are checked when they are read: they hold settings and addresses, never a command.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Self

from common.errors import DataError
from common.json_values import Bound, long, made, matching, one_of, parse_json_object, require_fields, within
from corpus.layout import DATASET_NAME, DIGEST_PATTERN
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
_DATASET = re.compile(
    rf"(s3://[a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9]/)?datasets/{DIGEST_PATTERN.pattern}/{re.escape(DATASET_NAME)}"
)
_IN_S3 = re.compile(r"s3://[^/]")
_OPTION = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MOST_BYTES, MOST_NODES, MOST_GPUS, MOST_ERROR = 1 << 20, 1024, 64, 1000
MOST_COUNTED = (1 << 60) - 1
_OF_A_COMMAND = ("resume", "force")
"""Options that say only what an output may hold."""
_OF_A_LAUNCH = ("nodes", "run", "token", "stop", "keep", "max_dollars", "until", "ready", "min_nodes")
"""Fields that say nothing of the work."""

Token = Annotated[str, matching("8 hexadecimal digits", TOKEN)]
"""Of a launch of a run: another launch has another."""
Instance = Annotated[str, matching("the id of an instance", INSTANCE)]
Fingerprint = Annotated[str, matching("12 hexadecimal digits", FINGERPRINT)]
Count = Annotated[int, within(0, MOST_COUNTED)]
Sentence = Annotated[str, long(0, MOST_ERROR)]
_Amount = Annotated[float, within(1e-6, MOST_COUNTED)]


def began(run: str) -> datetime:
    """When a run began, by its name. Raises ValueError where no such time is."""
    return datetime.strptime(run.rpartition(".")[2].partition("-")[0], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)


def has_time(run: str) -> bool:
    """Whether there is the time in the name of a run."""
    with suppress(ValueError):
        return bool(began(run))
    return False


@dataclass(frozen=True, kw_only=True)
class JsonDocument:
    """A document, which its fields declare. Raises DataError for values that they do not allow."""

    def __post_init__(self) -> None:
        require_fields(type(self), vars(self))

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`. Raises DataError for anything else."""
        if len(text) > _MOST_BYTES:
            raise DataError(f"it has more than {_MOST_BYTES:,} characters")
        written = parse_json_object(text)
        version = written.pop("version", None)
        if type(version) is not int or version != VERSION:
            raise DataError(f"it is of version {version!r}, and this is Shoal's {VERSION}; deploy again")
        return made(cls, written)


@dataclass(frozen=True, kw_only=True)
class LaunchDocument(JsonDocument):
    """A document on one launch of a run."""

    token: Token

    @classmethod
    def of_launch(cls, token: str, text: str | None) -> Self | None:
        """The document in a text; None for that of another launch, and for any other text: others may write it, too."""
        with suppress(DataError):
            found = cls.from_json(text or "")
            return found if found.token == token else None
        return None


@dataclass(frozen=True, kw_only=True)
class RunRequest(LaunchDocument):
    """What is wanted of a deployment's nodes."""

    run: Annotated[str, matching("the name of a run", RUN), Bound("the name of a run", has_time)]
    trainers: Annotated[int, within(1, MOST_NODES)]
    """How many nodes are to train."""
    readers: Annotated[int, within(0, MOST_NODES)] = 0
    """How many nodes are to read for them."""
    min_nodes: Annotated[int, within(1, MOST_NODES)] = 1
    """The fewest nodes that train, where some are lost."""
    nodes: tuple[Instance, ...] | None = None
    """The ids of those that may take part; None: all that have this channel."""
    share: Annotated[str, one_of(("efs", "nfs"))] | None
    """What serves the folder that all nodes share; None where each has its own."""
    options: Mapping[Annotated[str, matching("the name of an option", _OPTION)], tuple[str, ...]]
    """Those of the training that differ from their defaults, each with the words of its values."""
    dataset: Annotated[str, matching("the address of a dataset", _DATASET)] | None = None
    """An s3:// address, or a key of the channel; or `texts`, or `stream`."""
    texts: TextRequest | None = None
    texts_name: Fingerprint | None = None
    """What stands for these texts."""
    stream: StreamSettings | None = None
    stop: bool = False
    """Whether the ranks are to stop with a checkpoint."""
    keep: bool = False
    """Whether the nodes stay when the run has ended, and nobody ends them before they were idle for long."""
    max_dollars: _Amount | None = None
    """The most that its nodes may cost."""
    until: _Amount | None = None
    """When its ranks are to stop with a checkpoint, in seconds since 1970, so that its nodes do not cost more."""
    ready: bool = False
    """Whether its nodes have booted; before that the request only says whom they are for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.min_nodes <= self.trainers, f"min_nodes must be 1 to {self.trainers}")
        learnt = [each for each in (self.dataset, self.texts, self.stream) if each is not None]
        require(len(learnt) == 1, "a run learns from a dataset, from texts or from a stream")
        require((self.texts is None) == (self.texts_name is None), "texts go with their name")

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
class RequestDocument(JsonDocument):
    """The run that is wanted of a deployment's nodes, if there is one."""

    runs: Annotated[tuple[RunRequest, ...], long(0, 1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        texts = [each.address for run in self.runs if run.texts for each in run.texts.sources]
        streams = [each for run in self.runs if run.stream for each in run.stream.sources]
        require(all(map(_IN_S3.match, (*texts, *streams))), "a source is not in S3")

    @property
    def request(self) -> RunRequest | None:
        return next(iter(self.runs), None)


@dataclass(frozen=True, kw_only=True)
class Cancellation(LaunchDocument):
    """That a launch of the jobs is to end; its step answers by the same."""

    run: Fingerprint
    error: Sentence = ""
    """Of a step: why some of its work may go on."""

    @property
    def key(self) -> str:
        return f"{REQUESTS}{self.run}.cancelled.json"

    @property
    def answer_key(self) -> str:
        return f"{WORK}{self.run}/cancelled.json"


def token_in(text: str) -> str | None:
    """The token of the request in a document of any version; None where it has none."""
    try:
        runs = parse_json_object(text[:_MOST_BYTES]).get("runs")
    except DataError:
        return None
    tokens = [str(each.get("token")) for each in runs if isinstance(each, dict)] if isinstance(runs, list) else []
    return next(filter(TOKEN.fullmatch, tokens), None)


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
