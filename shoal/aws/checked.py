"""Checks of names, which return the checked name.

Validate a name from a bucket or from AWS before you use it in a command on a node or as a file name on this machine.
Nodes can write to the data bucket, and so can anyone who controls a node. It is not enough to quote a name for the
shell, because names are also parts of paths.
"""

import math
import re

from common import names
from common.errors import ShoalError
from common.files import DOCUMENT_BYTES, RECORD_BYTES
from common.names import ATTEMPTS, END_NAME, REQUEST_NAME, SETS
from corpus.layout import DATASET_NAME, DIGEST_PATTERN
from trainer.output.run_files import CHECKPOINTS, MODEL, MODEL_FILES, RECORD, STREAM, SUMMARY, VECTOR_FILES, VOCABULARY

_LOG_BYTES = 1_000_000_000
_RESULT = re.compile(
    rf"{'|'.join(map(re.escape, (RECORD, SUMMARY, REQUEST_NAME, END_NAME, STREAM)))}"
    rf"|{names.LOG.pattern}|reader-[0-9]{{1,6}}\.json|{SETS}[A-Za-z0-9=+@-][A-Za-z0-9.=+@_-]{{0,200}}"
    rf"|{MODEL}/({'|'.join(map(re.escape, {*MODEL_FILES, *VECTOR_FILES}))})"
    rf"|{CHECKPOINTS}/step-[0-9]{{9,18}}\.pt(\.damaged)?|{ATTEMPTS}[0-9]{{6}}\.json"
)
_DATASET = re.compile(rf"{names.DATASETS}{DIGEST_PATTERN.pattern}/{re.escape(DATASET_NAME)}")


def is_dataset(key: str) -> bool:
    """Return whether `key` is the S3 key of a dataset. Such a key contains the dataset's digest."""
    return _DATASET.fullmatch(key) is not None


def bucket(name: str) -> str:
    """Check the name of a bucket, and return it. This function and all functions below raise ShoalError if their
    argument is invalid."""
    return _matching(names.BUCKET, name, "a bucket", "3 to 63 lowercase letters, digits, dots and dashes")


def region(name: str) -> str:
    """Check the code of a region, and return it."""
    return _matching(names.REGION, name, "a region", "a code such as us-east-1; set it with --region")


def instance(identifier: str) -> str:
    """Check the id of an instance, and return it."""
    return _matching(names.INSTANCE, identifier, "an instance", "an id such as i-0123456789abcdef0")


def address(text: str) -> str:
    """Check an IPv4 address, and return it."""
    if not names.ADDRESS.fullmatch(text):
        raise ShoalError(f"a node's address must be an IPv4 address such as 10.0.1.20, not {text!r}")
    return text


def run(name: str) -> str:
    """Check the name of a training run, and return it."""
    if not names.is_run(name):
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
        f"{names.DATASETS}DIGEST/{DATASET_NAME}, with the digest that `shoal dataset info` prints; upload "
        "a file of this machine with --data",
    )


def _matching(pattern: re.Pattern[str], text: str, what: str, rule: str) -> str:
    if not pattern.fullmatch(text):
        raise ShoalError(f"{text!r} is not a valid name for {what}: it must be {rule}")
    return text
