"""Reads what a GPU node reported of its first boot: `state`, the end of its `log`, and its `python`.

Check the report, because root on a node can write anything into it.
"""

import json

from botocore.exceptions import ClientError
from shoal_guard.sweep.account import reason_of

from bootstrap.aws.account import Account
from corpus.reading.s3 import S3Path, read_text
from infra import topology

UNREADABLE = "unreadable"
_QUOTED_CHARACTERS = 500
"""The most characters that are quoted of a report that cannot be read."""


def parse(text: str) -> dict[str, str]:
    """The report's fields; for one that cannot be read the state UNREADABLE, and its text as `log`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # nested too deeply for the parser
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return {"state": UNREADABLE, "log": f"its report cannot be read: {text[:_QUOTED_CHARACTERS]}"}
    return {"state": UNREADABLE, "log": "", **found}


def of_node(account: Account, bucket: str | None, instance: str) -> dict[str, str]:
    """What a node's first boot reported: `state` and `log`; nothing until it has reported.

    Where AWS refuses to read it, the state is UNREADABLE, and the log is the refusal.
    """
    if bucket is None:
        return {}
    try:
        text = read_text(account.client("s3"), S3Path(bucket, f"{topology.NODES_PREFIX}{instance}.json"))
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":  # deleted with its stack
            return {}
        return {"state": UNREADABLE, "log": f"its report cannot be read: {reason_of(error)}"}
    return parse(text) if text else {}
