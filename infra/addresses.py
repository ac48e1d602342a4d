"""Inputs of a topology: the S3 addresses outside the deployment that its nodes may read.

`s3://bucket/name` matches the object `name` and all objects below `name/`, as in `--input`; it does not match `name-2`.
With a final slash it matches only the objects below. IAM permissions and the check of an address use the same patterns.
"""

import re
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
MOST = 10
"""Maximum number of inputs of a topology: with this many of LONGEST characters a role's policy meets AWS's limit."""
LONGEST = 120
_SCHEME = "s3://"
_CHARACTERS = "A-Za-z0-9_.:/=+@-"
"""Characters of object names: no wildcards of IAM, and no space, which separates the addresses in a stack output."""


def possible_bucket(name: str) -> str:
    """Return the name. Raises ValueError if S3 does not accept it as a bucket name."""
    if re.search(r"\.[.-]|-\.", name) or re.fullmatch(r"\d+(\.\d+){3}", name):
        raise ValueError(
            f"'{name}' is not a valid bucket name (a dot next to a dot or a dash, or an IP address); write the name of "
            "an existing bucket."
        )
    return name


def _valid_address(address: str) -> str:
    bucket, key = split(address)
    possible_bucket(bucket)
    if key and {"", ".", ".."} & set(key.removesuffix("/").split("/")):
        raise ValueError(f"'{address}' has an empty, '.' or '..' part; write the name as S3 lists it.")
    return address


InputAddress = Annotated[
    str,
    Field(pattern=rf"^{_SCHEME}{BUCKET.pattern}(/[{_CHARACTERS}]*)?$", max_length=LONGEST),
    AfterValidator(_valid_address),
]
_ADDRESS: TypeAdapter[str] = TypeAdapter(InputAddress)


def split(address: str) -> tuple[str, str]:
    """Return the bucket and the object's name, which is empty for the whole bucket."""
    bucket, _, key = address.removeprefix(_SCHEME).partition("/")
    return bucket, key


def patterns(named: str) -> list[str]:
    """Return patterns that match the keys of an input, in which `*` is any text. The last one ends with `*`."""
    _, key = split(named)
    return [f"{key}*"] if not key or key.endswith("/") else [key, f"{key}/*"]


def contains(named: str, address: str) -> bool:
    """Return whether an input contains an address, which may be an object, a folder or a pattern."""
    bucket, key = split(address)
    return bucket == split(named)[0] and any(fnmatchcase(key, pattern) for pattern in patterns(named))


def narrowest(address: str) -> str:
    """Return the narrowest valid input that contains this address: itself, its nearest parent folder, or its bucket."""
    above = [address[: slash.end()] for slash in re.finditer("/", address)]
    return next(filter(_is_valid, (address, *reversed(above))), address)


def _is_valid(address: str) -> bool:
    try:
        _ADDRESS.validate_python(address)
    except ValidationError:
        return False
    return True
