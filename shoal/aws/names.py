"""Validation of all names that Shoal creates.

Validate a name from a bucket or from AWS before you use it in a command on a node or as a file name on this machine.
Nodes can write to the data bucket, and so can anyone who controls a node. It is not enough to quote a name for the
shell, because names are also parts of paths.
"""

import math
import re
from ipaddress import AddressValueError, IPv4Address

from bootstrap.node.documents import ATTEMPTS, END_NAME, INSTANCE, REQUEST_NAME, has_start_time
from common.errors import ShoalError
from common.files import DOCUMENT_BYTES, RECORD_BYTES
from corpus.layout import DATASET_NAME, DIGEST_PATTERN
from infra import addresses, parts, topology
from trainer.output.run_files import CHECKPOINTS, MODEL, MODEL_FILES, RECORD, STREAM, SUMMARY, VECTOR_FILES, VOCABULARY

SETS = "sets/"
"""Folder of a run for files that the launching machine uploads: evaluation sets of word embeddings, and word vectors
from which a classifier starts."""

_LOG_BYTES = 1_000_000_000
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}")
_RUN = re.compile(rf"{parts.NAME.pattern}\.[0-9]{{8}}T[0-9]{{6}}-[0-9a-f]{{4}}")
_RESULT = re.compile(
    rf"{'|'.join(map(re.escape, (RECORD, SUMMARY, REQUEST_NAME, END_NAME, STREAM)))}"
    rf"|(node|reader)-[0-9]{{1,6}}(-attempt-[0-9]{{1,6}})?\.log|reader-[0-9]{{1,6}}\.json|{SETS}[A-Za-z0-9=+@-][A-Za-z0-9.=+@_-]{{0,200}}"
    rf"|{MODEL}/({'|'.join(map(re.escape, {*MODEL_FILES, *VECTOR_FILES}))})"
    rf"|{CHECKPOINTS}/step-[0-9]{{9,18}}\.pt(\.damaged)?|{ATTEMPTS}[0-9]{{6}}\.json"
)
_DATASET = re.compile(rf"{topology.DATASETS_PREFIX}{DIGEST_PATTERN.pattern}/{re.escape(DATASET_NAME)}")


def is_run(name: str) -> bool:
    """Return whether `name` is the name of a training run: deployment, start time, and four hexadecimal digits."""
    return _RUN.fullmatch(name) is not None and has_start_time(name)


def is_dataset(key: str) -> bool:
    """Return whether `key` is the S3 key of a dataset. Such a key contains the dataset's digest."""
    return _DATASET.fullmatch(key) is not None


def bucket(name: str) -> str:
    """Check the name of a bucket, and return it. This function and all functions below raise ShoalError if their
    argument is invalid."""
    return _matching(addresses.BUCKET, name, "a bucket", "3 to 63 lowercase letters, digits, dots and dashes")


def region(name: str) -> str:
    """Check the code of a region, and return it."""
    return _matching(_REGION, name, "a region", "a code such as us-east-1; set it with --region")


def instance(identifier: str) -> str:
    """Check the id of an instance, and return it."""
    return _matching(INSTANCE, identifier, "an instance", "an id such as i-0123456789abcdef0")


def address(text: str) -> str:
    """Check an IPv4 address, and return it."""
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        raise ShoalError(f"a node's address must be an IPv4 address such as 10.0.1.20, not {text!r}") from None


def run(name: str) -> str:
    """Check the name of a training run, and return it."""
    if not is_run(name):
        rule = "DEPLOYMENT.YYYYMMDDTHHMMSS-XXXX, as `shoal train` prints it"
        raise ShoalError(f"{name!r} is not a valid name for a training run: it must be {rule}")
    return name


def result(name: str) -> str:
    """Check the name of a file that a training run writes, and return it. The name is relative to the run's folder."""
    return _matching(
        _RESULT,
        name,
        "a file of a training run",
        f"{RECORD}, {SUMMARY}, {REQUEST_NAME}, {END_NAME}, {STREAM}, a file of {MODEL}/ or {SETS}, node-N.log, "
        "reader-N.log, node-N-attempt-M.log, reader-N-attempt-M.log, reader-N.json, "
        f"{ATTEMPTS}NNNNNN.json, or {CHECKPOINTS}/step-NNNNNNNNN.pt",
    )


def most_bytes(result: str) -> float:
    """Return the maximum size of a file of a training run in bytes. It is infinite for files with weights, because the
    model determines their size."""
    if result.endswith(".log"):
        return _LOG_BYTES
    if result == RECORD or result.endswith(f"/{VOCABULARY}"):
        return RECORD_BYTES
    return DOCUMENT_BYTES if result.endswith((".json", ".md")) else math.inf


def dataset(key: str) -> str:
    """Check the S3 key of a dataset, and return it."""
    return _matching(
        _DATASET,
        key,
        "a dataset",
        f"{topology.DATASETS_PREFIX}DIGEST/{DATASET_NAME}, with the digest that `shoal dataset info` prints; upload "
        "a file of this machine with --data",
    )


def _matching(pattern: re.Pattern[str], text: str, what: str, rule: str) -> str:
    if not pattern.fullmatch(text):
        raise ShoalError(f"{text!r} is not a valid name for {what}: it must be {rule}")
    return text
