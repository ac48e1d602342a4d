"""What a GPU node reports of its first boot, as it is read: `state`, the end of its `log`, and its `python`.

The easy mistake is to believe that a node wrote it as its boot script does: whoever is root there may write anything.
"""

import json

from botocore.exceptions import ClientError

from bootstrap.aws import objects
from bootstrap.aws.account import Account
from bootstrap.aws.objects import Place
from bootstrap.aws.ownership import reason_of
from infra import topology

UNREADABLE = "unreadable"
_QUOTED_CHARACTERS = 500
"""So many signs of what cannot be read are told."""


def parse(text: str) -> dict[str, str]:
    """The report's fields; of one that cannot be read the state is UNREADABLE, and the log what it says instead."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # so deep that the parser gives up
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return {"state": UNREADABLE, "log": f"its report cannot be read: {text[:_QUOTED_CHARACTERS]}"}
    return {"state": UNREADABLE, "log": "", **found}


def of_node(account: Account, bucket: str | None, instance: str) -> dict[str, str]:
    """What a node's first boot reported: `state` and `log`; nothing as long as it has not.

    Where AWS refuses to tell, the state is that of a report that cannot be read, with the refusal for its log.
    """
    if bucket is None:
        return {}
    try:
        text = objects.read_text(account.client("s3"), Place(bucket, f"{topology.NODES_PREFIX}{instance}.json"))
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":  # it went while the stack did
            return {}
        return {"state": UNREADABLE, "log": f"its report cannot be read: {reason_of(error)}"}
    return parse(text) if text else {}
