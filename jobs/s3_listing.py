"""The objects of S3 that an address, a prefix or a pattern names.

The easy mistake is to list by a prefix alone: `reviews` would take `reviews-old/` too.
"""

import re
from collections.abc import Iterator
from typing import Any

from corpus.errors import DataError
from jobs.storage import is_s3, place, s3_client

PATTERN = re.compile(r"[*?\[]")
"""Where a pattern begins."""

Entry = tuple[str, int, str]
"""The address of a file, its size in bytes, and what changes when its content does."""


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is passed over where its folder is given."""
    return name.startswith((".", "_"))


def find_objects(given: str, leave_out: str | None) -> list[Entry]:
    """Address, size and identity of the objects that an address, a prefix or a pattern names."""
    bucket, key = place(given)
    if not bucket:
        raise DataError(f"'{given}' is no address of S3; it should look like s3://bucket/name")
    exact = next(_listed(bucket, key, 1), None) if key and not key.endswith("/") else None
    if exact and exact[0] == f"s3://{bucket}/{key}":
        return [exact]
    if pattern := PATTERN.search(key):
        matching, start = key_pattern(key), len(f"s3://{bucket}/")
        entries = [entry for entry in _listed(bucket, key[: pattern.start()]) if matching.fullmatch(entry[0], start)]
        return [entry for entry in entries if not entry[0].endswith("/")] or _nothing(given, "pattern")
    prefix = f"{key.rstrip('/')}/" if key else ""
    below = f"s3://{bucket}/{prefix}"
    entries = [
        entry
        for entry in _listed(bucket, prefix)
        if not entry[0].endswith("/") and not any(map(is_hidden, entry[0].removeprefix(below).split("/")))
    ]
    if leave_out is not None and is_s3(leave_out):
        entries = [entry for entry in entries if not entry[0].startswith(f"{leave_out.rstrip('/')}/")]
    return entries or _nothing(given, "address")


def _nothing(given: str, what: str) -> list[Entry]:
    raise DataError(f"there is nothing at {given}; check the {what}")


def _listed(bucket: str, prefix: str, at_most: int | None = None) -> Iterator[Entry]:
    """The objects whose keys start with a prefix, in the order of their keys; `at_most` so many where it is given."""
    from botocore.exceptions import ClientError  # only where S3 is asked: it takes long to load

    limit: Any = {} if at_most is None else {"MaxItems": at_most, "PageSize": at_most}
    pages = s3_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, PaginationConfig=limit)
    try:
        for page in pages:
            for each in page.get("Contents", ()):
                yield f"s3://{bucket}/{each['Key']}", each["Size"], each["ETag"].strip('"')
    except ClientError as error:
        if error.response["Error"].get("Code") in ("NoSuchBucket", "404"):
            raise DataError(f"there is no bucket {bucket}; check the address s3://{bucket}/{prefix}") from error
        raise


def key_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of keys as a regular expression: `*`, `?` and `[...]` stay in a folder, `**` crosses them."""
    out = []
    for token in re.findall(r"\*\*/|\*\*|\*|\?|\[!?[^\]!/][^\]/]*\]|.", pattern, re.DOTALL):
        if len(token) > 1 and token.startswith("["):
            negated, among = token[1] == "!", token[1:-1].removeprefix("!")
            out.append(f"[{'^/' if negated else ''}{_ranges(among)}]")
        else:
            out.append({"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(token, re.escape(token)))
    return re.compile("".join(out), re.DOTALL)


def _ranges(among: str) -> str:
    """What stands between brackets, with ranges only where they rise."""
    return re.sub(
        r"(.)-(.)|.",
        lambda found: (
            f"{re.escape(found[1])}-{re.escape(found[2])}" if found[1] and found[1] <= found[2] else re.escape(found[0])
        ),
        among,
        flags=re.DOTALL,
    )
