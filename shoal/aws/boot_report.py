"""Report that a node writes about its first boot. Its fields are `state`, the end of the boot `log`, and the `python`
version.

Validate every report, because anyone who controls a node can write any text to it.
"""

import json

from botocore.exceptions import ClientError

from common import names
from corpus.reading.s3 import S3Path, read_text
from shoal.aws.account import Account, reason_of

UNREADABLE = "unreadable"
_QUOTED_CHARACTERS = 500
"""Maximum number of characters quoted from an unreadable report."""


def parse(text: str) -> dict[str, str]:
    """Return the report's fields. For an unreadable report, `state` is UNREADABLE and `log` quotes the beginning of its
    text."""
    try:
        report = json.loads(text)
    except (ValueError, RecursionError):  # nested too deeply for the parser
        report = None
    quoted = text[:_QUOTED_CHARACTERS].partition("\0")[0]  # a truncated file on a disk can end in thousands of NULs
    if not isinstance(report, dict) or not all(isinstance(value, str) for value in report.values()):
        return {"state": UNREADABLE, "log": f"Shoal cannot read its report: {quoted}"}
    return {"state": UNREADABLE, "log": "", **report}


def read_report(account: Account, bucket: str | None, instance: str) -> dict[str, str]:
    """Return the fields of a node's report of its first boot, or an empty dictionary if the node has not reported yet.

    If AWS refuses access, `state` is UNREADABLE and `log` states the reason of the refusal.
    """
    if bucket is None:
        return {}
    try:
        text = read_text(account.client("s3"), S3Path(bucket, f"{names.NODES}{instance}.json"))
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":  # the bucket was deleted with its stack
            return {}
        return {"state": UNREADABLE, "log": f"Shoal cannot read its report: {reason_of(error)}"}
    return parse(text) if text else {}
