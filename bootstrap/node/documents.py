"""Documents that control the work on nodes: requests, cancellations, attempts and statuses.

Only the launcher can write a request or a cancellation. Nodes write attempts and statuses, so anyone who controls a
node can write these. All documents are therefore validated when they are read. They contain settings and addresses,
never commands.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Self

from common import names
from common.checked_values import Must, matching, of_length, one_of, require_fields, within
from common.errors import DataError
from common.json_values import from_json, parse_json_object
from corpus.layout import DATASET_NAME, DIGEST_PATTERN
from corpus.raw_texts import RawTexts
from corpus.stream.stream_settings import StreamSettings

VERSION = 2
"""Version of every kind of document. An agent rejects documents of a different version, and reports the rejection."""

PHASES = ("wait", "stage", "staged", "run", "end", "done", "failed")
"""Phases of a node, in order.

`wait`: waiting for an attempt; `stage`: copying the data; `staged`: waiting for the other nodes; `run`: training, or
reading a stream; `end`: copying the results; `done`: finished; `failed`: unable to finish.
"""
OUTCOMES = ("finished", "stopped", "failed")
"""Outcomes of a run."""

_DATASET = re.compile(
    rf"(s3://{names.BUCKET.pattern}/)?{names.DATASETS}{DIGEST_PATTERN.pattern}/{re.escape(DATASET_NAME)}"
)
_IN_S3 = re.compile(r"s3://[^/]")
_OPTION = re.compile(r"[a-z][a-z0-9_]{0,39}")
_MAX_CHARACTERS, MAX_NODES, MAX_GPUS, MAX_ERROR_LENGTH = 1 << 20, 1024, 64, 1000
MAX_COUNT = (1 << 60) - 1
_OUTPUT_OPTIONS = ("resume", "force")
"""Command options that only state what to do if the output exists already."""
_LAUNCH_FIELDS = ("nodes", "run", "token", "stop", "keep", "max_dollars", "until", "ready", "min_nodes")
"""Fields of a request that do not describe the training itself."""

Token = Annotated[str, matching("8 hexadecimal digits", names.TOKEN)]
"""Identifier of a launch. Each command that starts or resumes a run makes one launch, which can take several
attempts."""
Instance = Annotated[str, matching("the id of an instance", names.INSTANCE)]
Fingerprint = Annotated[str, matching("12 hexadecimal digits", names.FINGERPRINT)]
Count = Annotated[int, within(0, MAX_COUNT)]
Sentence = Annotated[str, of_length(0, MAX_ERROR_LENGTH)]
_Positive = Annotated[float, within(1e-6, MAX_COUNT)]


@dataclass(frozen=True, kw_only=True)
class JsonDocument:
    """Document with validated fields. The constructor raises DataError for values that a field does not allow."""

    def __post_init__(self) -> None:
        require_fields(type(self), vars(self))

    def to_json(self) -> str:
        return json.dumps({"version": VERSION, **asdict(self)}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the output of `to_json`. Raises DataError for any other text. The message starts with "it", which means
        the document."""
        if len(text) > _MAX_CHARACTERS:
            raise DataError(f"it has more than {_MAX_CHARACTERS:,} characters")
        fields = parse_json_object(text)
        version = fields.pop("version", None)
        if type(version) is not int or version != VERSION:
            raise DataError(f"its version is {version!r}, but this Shoal uses version {VERSION}; deploy again")
        return from_json(cls, fields)


@dataclass(frozen=True, kw_only=True)
class TokenDocument(JsonDocument):
    """Document that belongs to one launch of a run, which the token identifies."""

    token: Token

    @classmethod
    def of_launch(cls, token: str, text: str | None) -> Self | None:
        """Parse a document. Return None if the text is invalid or the document belongs to a launch with a different
        token.

        Invalid text is not an error here, because other nodes and earlier launches write to the same keys.
        """
        with suppress(DataError):
            document = cls.from_json(text or "")
            return document if document.token == token else None
        return None


@dataclass(frozen=True, kw_only=True)
class RunRequest(TokenDocument):
    """Request that the nodes of a deployment execute a run."""

    run: Annotated[str, Must("the name of a run", names.is_run)]
    trainers: Annotated[int, within(1, MAX_NODES)]
    """Number of nodes that train."""
    readers: Annotated[int, within(0, MAX_NODES)] = 0
    """Number of reader nodes."""
    min_nodes: Annotated[int, within(1, MAX_NODES)] = 1
    """Minimum number of training nodes with which the run continues after the loss of nodes."""
    nodes: tuple[Instance, ...] | None = None
    """Instance ids of the nodes that are allowed to take part. If None, all nodes that read this request can take
    part."""
    share: Annotated[str, one_of(("efs", "nfs"))] | None
    """File system of the shared folder. If None, each node has its own folder."""
    options: Mapping[Annotated[str, matching("the name of an option", _OPTION)], tuple[str, ...]]
    """Training options that differ from their defaults: a mapping from each option's name to its values on the command
    line."""
    dataset: Annotated[str, matching("the address of a dataset", _DATASET)] | None = None
    """Dataset: an s3:// address, or a key in the document store. Exactly one of `dataset`, `texts` and `stream` is
    set."""
    texts: RawTexts | None = None
    texts_name: Fingerprint | None = None
    """Fingerprint of `texts`, used in file names."""
    stream: StreamSettings | None = None
    stop: bool = False
    """Whether the ranks must stop with a checkpoint."""
    keep: bool = False
    """Whether the nodes are kept after the run, until the guard stops them for being idle."""
    max_dollars: _Positive | None = None
    """Maximum cost of the run's nodes in dollars."""
    until: _Positive | None = None
    """Time in seconds since 1970 at which the ranks must stop with a checkpoint, so that the cost does not exceed
    `max_dollars`."""
    ready: bool = False
    """Whether all nodes have booted. Until then, the request only reserves them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.min_nodes <= self.trainers, f"min_nodes must be 1 to {self.trainers}")
        sources = [each for each in (self.dataset, self.texts, self.stream) if each is not None]
        require(len(sources) == 1, "a run needs exactly one of dataset, texts and stream")
        require((self.texts is None) == (self.texts_name is None), "texts and texts_name must be set together")

    def at(self, time: float) -> Self:
        """Return a copy of the request. If `until` has passed at `time` (seconds since 1970), `stop` is set in the
        copy."""
        return replace(self, stop=self.stop or (self.until is not None and time >= self.until))

    @property
    def end_key(self) -> str:
        """Key of the document that states that the run has ended."""
        return names.end_key(self.run)

    def same_work(self, other: "RunRequest") -> bool:
        """Return whether `other` requests the same training: the same data and options, for example if a user repeated
        a command."""
        here = {name: words for name, words in self.options.items() if name not in _OUTPUT_OPTIONS}
        options = {name: tuple(word.replace(self.run, other.run) for word in words) for name, words in here.items()}
        options |= {name: words for name, words in other.options.items() if name in _OUTPUT_OPTIONS}
        state = {name: getattr(other, name) for name in _LAUNCH_FIELDS}
        return replace(self, options=options, **state) == other


@dataclass(frozen=True, kw_only=True)
class RequestDocument(JsonDocument):
    """Document with the request for a deployment's nodes, or with no request."""

    runs: Annotated[tuple[RunRequest, ...], of_length(0, 1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        texts = [each.address for run in self.runs if run.texts for each in run.texts.sources]
        streams = [each for run in self.runs if run.stream for each in run.stream.sources]
        require(all(map(_IN_S3.match, (*texts, *streams))), "a source is not in S3")

    @property
    def request(self) -> RunRequest | None:
        return next(iter(self.runs), None)


@dataclass(frozen=True, kw_only=True)
class Cancellation(TokenDocument):
    """Cancellation of a launch of preprocessing jobs. The cancelled step writes a copy of the document as its
    answer."""

    run: Fingerprint
    error: Sentence = ""
    """Reason why some applications of the cancelled step might still be running. It is set only in an answer."""

    @property
    def key(self) -> str:
        return f"{names.REQUESTS}{self.run}.cancelled.json"

    @property
    def answer_key(self) -> str:
        return f"{names.WORK}{self.run}/cancelled.json"


def token_in(text: str) -> str | None:
    """Return the token of the request in a document of any version, or None if the document contains no valid token."""
    try:
        runs = parse_json_object(text[:_MAX_CHARACTERS]).get("runs")
    except DataError:
        return None
    tokens = [str(each.get("token")) for each in runs if isinstance(each, dict)] if isinstance(runs, list) else []
    return next(filter(names.TOKEN.fullmatch, tokens), None)


def require(holds: object, sentence: str) -> None:
    """Raise DataError with `sentence` if `holds` is false."""
    if not holds:
        raise DataError(sentence)
