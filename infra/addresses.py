"""Inputs of a topology: S3 addresses outside the deployment that the nodes are allowed to read.

As in `--input`, `s3://bucket/name` matches the object `name` and all objects below `name/`, but not the object
`name-2`. `s3://bucket/name/` matches only the objects below `name/`. IAM permissions and the check of an address use
the same patterns.
"""

import re
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, Field

from common import names

MOST = 10
"""Maximum number of inputs of a topology. A role's policy with this number of inputs of LONGEST characters still fits
within AWS's size limit."""
LONGEST = 120
_SCHEME = "s3://"
_CHARACTERS = "A-Za-z0-9_.:/=+@-"
"""Valid characters in object names. IAM wildcards are invalid. Spaces are invalid, too, because they separate the
addresses in a stack output."""


def possible_bucket(name: str) -> str:
    """Return `name`. Raises ValueError if S3 does not accept it as a bucket name."""
    if re.search(r"\.[.-]|-\.", name) or re.fullmatch(r"\d+(\.\d+){3}", name):
        raise ValueError(
            f"'{name}' is not a valid bucket name, because it has a dot next to a dot or a dash, or is an IP "
            "address; write the name of "
            "an existing bucket."
        )
    return name


def _valid_address(address: str) -> str:
    bucket, key = split(address)
    possible_bucket(bucket)
    if key and {"", ".", ".."} & set(key.removesuffix("/").split("/")):
        raise ValueError(
            f"'{address}' has a part between slashes that is empty, '.' or '..'; write the name as S3 lists it."
        )
    return address


InputAddress = Annotated[
    str,
    Field(pattern=rf"^{_SCHEME}{names.BUCKET.pattern}(/[{_CHARACTERS}]*)?$", max_length=LONGEST),
    AfterValidator(_valid_address),
]


def split(address: str) -> tuple[str, str]:
    """Return the bucket and the object name of an address. The object name is empty if the address is a whole
    bucket."""
    bucket, _, key = address.removeprefix(_SCHEME).partition("/")
    return bucket, key


def patterns(named: str) -> list[str]:
    """Return patterns for the object keys that belong to the input `named`. In a pattern, `*` matches any characters.
    The last pattern ends with `*`."""
    _, key = split(named)
    return [f"{key}*"] if not key or key.endswith("/") else [key, f"{key}/*"]


def contains(named: str, address: str) -> bool:
    """Return whether the input `named` contains `address`, which is an object, a folder or a pattern."""
    bucket, key = split(address)
    return bucket == split(named)[0] and any(fnmatchcase(key, pattern) for pattern in patterns(named))


def narrowest(address: str) -> str:
    """Return the address itself or, for a pattern, its nearest parent folder without a wildcard."""
    literal = re.split(r"[*?[]", address)[0]
    return address if literal == address else literal[: literal.rindex("/") + 1]
