"""The addresses that a topology names as its inputs: what nodes may read besides the buckets of their deployment.

`s3://bucket/name` stands for the object `name` and for everything below `name/`, as in `--input`, and not for `name-2`,
although that begins with the same letters. With a final slash it stands only for what is below. The rights of the
nodes and the check of an address follow from the same patterns.
"""

import re
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
MOST = 10
"""The most inputs of a topology: with all of them, each the longest, the policy of a role is below AWS's limit."""
LONGEST = 120
_SCHEME = "s3://"
_CHARACTERS = "A-Za-z0-9_.:/=+@-"
"""Of names: none that means something in the patterns of permissions, and no space, which separates the addresses of an
output."""


def possible_bucket(name: str) -> str:
    """Return the name. Raises ValueError where a name of these characters cannot be a bucket's."""
    if re.search(r"\.[.-]|-\.", name) or re.fullmatch(r"\d+(\.\d+){3}", name):
        raise ValueError(
            f"'{name}' cannot be a bucket's name (a dot beside a dot or a dash, or an IP address); write the name of "
            "an existing bucket."
        )
    return name


def _possible(address: str) -> str:
    bucket, key = split(address)
    possible_bucket(bucket)
    if key and {"", ".", ".."} & set(key.removesuffix("/").split("/")):
        raise ValueError(f"'{address}' has a part that is empty, '.' or '..'; write the name as S3 lists it.")
    return address


InputAddress = Annotated[
    str,
    Field(pattern=rf"^{_SCHEME}{BUCKET.pattern}(/[{_CHARACTERS}]*)?$", max_length=LONGEST),
    AfterValidator(_possible),
]
_ADDRESS: TypeAdapter[str] = TypeAdapter(InputAddress)


def split(address: str) -> tuple[str, str]:
    """The bucket, and the name in it, which is empty for the whole bucket."""
    bucket, _, key = address.removeprefix(_SCHEME).partition("/")
    return bucket, key


def patterns(named: str) -> list[str]:
    """The keys that an input stands for, as patterns in which `*` is any text; the last one ends with it."""
    _, key = split(named)
    return [f"{key}*"] if not key or key.endswith("/") else [key, f"{key}/*"]


def contains(named: str, address: str) -> bool:
    """Whether an input contains an address, which may be an object, a folder or a pattern."""
    bucket, key = split(address)
    return bucket == split(named)[0] and any(fnmatchcase(key, pattern) for pattern in patterns(named))


def narrowest(address: str) -> str:
    """The least that a topology can name for this address: itself, or the nearest folder above it, or its bucket."""
    above = [address[: slash.end()] for slash in re.finditer("/", address)]
    return next(filter(_can_be_named, (address, *reversed(above))), address)


def _can_be_named(address: str) -> bool:
    try:
        _ADDRESS.validate_python(address)
    except ValidationError:
        return False
    return True
