"""Report of a node about its first boot: `state`, the end of its `log`, and its `python` version.

Validate the report, because root on a node can write anything into it.
"""

import json

from botocore.exceptions import ClientError
from shoal_guard.sweep.account import reason_of

from bootstrap.aws.account import Account
from corpus.reading.s3 import S3Path, read_text
from infra import topology

UNREADABLE = "unreadable"
_QUOTED_CHARACTERS = 500
"""Maximum number of characters quoted from an unreadable report."""


def parse(text: str) -> dict[str, str]:
    """Return the report's fields. An unreadable report has the state UNREADABLE and its text as `log`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # nested too deeply for the parser
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return {"state": UNREADABLE, "log": f"Shoal cannot read its report: {text[:_QUOTED_CHARACTERS]}"}
    return {"state": UNREADABLE, "log": "", **found}


def read_report(account: Account, bucket: str | None, instance: str) -> dict[str, str]:
    """Return a node's report of its first boot; empty until the node has reported.

    If AWS refuses access, the state is UNREADABLE and `log` is the refusal.
    """
    if bucket is None:
        return {}
    try:
        text = read_text(account.client("s3"), S3Path(bucket, f"{topology.NODES_PREFIX}{instance}.json"))
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":  # the bucket was deleted with its stack
            return {}
        return {"state": UNREADABLE, "log": f"Shoal cannot read its report: {reason_of(error)}"}
    return parse(text) if text else {}
