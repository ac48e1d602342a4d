"""Parser of the hosts file, which lists the user's hosts.

Each line contains either a host, as `user@host[:port]` with options for this host, or an option for all hosts:

    folder=/srv/shoal                  required: a folder that all hosts share, or a bucket, s3://BUCKET
    python=/opt/venv/bin/python        a Python with PyTorch (default: python3)
    ann@10.0.0.1 gpus=2
    ann@10.0.0.2:2222 address=192.168.7.2
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from bootstrap.node.documents import MAX_GPUS, MAX_NODES
from common import names
from common.errors import DataError, ShoalError
from common.files import DOCUMENT_BYTES, read_regular
from corpus.reading.s3 import is_s3, place_of

_HOST = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][\w.-]{0,63})@)?(?P<name>[A-Za-z0-9][A-Za-z0-9.-]{0,252})(?::(?P<port>\d{1,5}))?"
)
_PATH = re.compile(r"/[^\x00-\x1f\x7f]{0,1023}")
_OF_ALL, _OF_ONE = ("folder", "python"), ("gpus", "address", "python")


@dataclass(frozen=True, kw_only=True)
class Host:
    name: str
    """Name that SSH connects to: an address, a host name, or an alias in ~/.ssh/config."""
    user: str | None
    port: int | None
    gpus: int | None
    """Number of GPUs to use, with one rank per GPU. If None, use all GPUs of the host, or one rank if the host has no
    GPU."""
    address: str | None
    """IPv4 address at which the other hosts reach this host. If None, they use the address that `name` resolves to."""
    python: str

    @property
    def label(self) -> str:
        """Name of the host in messages."""
        return f"{f'{self.user}@' if self.user else ''}{self.name}{f':{self.port}' if self.port else ''}"

    @property
    def instance(self) -> str:
        """Identifier of the host in the agents' documents. It has the form of an EC2 instance id."""
        return f"i-{sha256(self.label.encode()).hexdigest()[:17]}"


@dataclass(frozen=True, kw_only=True)
class HostsFile:
    """Content of a hosts file: the hosts and their shared folder."""

    path: Path
    folder: str
    """Path of the shared folder, or s3://BUCKET."""
    hosts: tuple[Host, ...]


def read_hosts(path: Path) -> HostsFile:
    """Read a hosts file. Raises ShoalError, which names the line, if the file is invalid."""
    try:
        lines = read_regular(path, DOCUMENT_BYTES).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ShoalError(f"cannot read the hosts file {path}: {reason}") from error
    common: dict[str, str] = {}
    named: list[tuple[int, re.Match[str], dict[str, str]]] = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{path}, line {number}"
        if (start := _HOST.fullmatch(words[0])) is None:
            common |= _options(words, _OF_ALL, where)
        else:
            named.append((number, start, _options(words[1:], _OF_ONE, where)))
    hosts = tuple(_host(match, {**common, **options}, f"{path}, line {number}") for number, match, options in named)
    for host in hosts:
        if [each.label for each in hosts].count(host.label) > 1:
            raise ShoalError(f"{path} lists {host.label} twice; list it once, with gpus=N for several ranks")
    if not 0 < len(hosts) <= MAX_NODES:
        raise ShoalError(f"{path} lists {len(hosts):,} hosts; list 1 to {MAX_NODES:,}, one per line: user@host")
    if "folder" not in common:
        raise ShoalError(
            f"{path} names no shared folder; add folder=/PATH on a network file system (any folder if there is one "
            "host), or folder=s3://BUCKET"
        )
    return HostsFile(path=path, folder=_folder(common["folder"]), hosts=hosts)


def _options(words: list[str], known: tuple[str, ...], where: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            raise ShoalError(
                f"{where}: '{word}' is neither user@host[:port] nor one of {', '.join(f'{each}=...' for each in known)}"
            )
        if name == "python" and value != "python3" and not _PATH.fullmatch(value):
            raise ShoalError(f"{where}: python must be an absolute path, but is '{value}'")
        if name == "folder" and not (_PATH.fullmatch(value) or _is_bucket(value)):
            raise ShoalError(
                f"{where}: folder must be an absolute path, or s3://BUCKET for a whole bucket, but is '{value}'"
            )
        options[name] = value
    return options


def _is_bucket(address: str) -> bool:
    try:
        bucket, key = place_of(address)
    except DataError:
        return False
    return not key and names.BUCKET.fullmatch(bucket) is not None


def _folder(address: str) -> str:
    """Return the address of the shared folder in canonical form, because agents compare addresses."""
    return address.rstrip("/") if is_s3(address) else str(PurePosixPath(address))


def _host(found: re.Match[str], options: Mapping[str, str], where: str) -> Host:
    port, gpus, address = found["port"], options.get("gpus"), options.get("address")
    if port is not None and not 0 < int(port) < 1 << 16:
        raise ShoalError(f"{where}: the port must be 1 to 65535, but is {port}")
    if gpus is not None and not (gpus.isascii() and gpus.isdecimal() and 0 < int(gpus) <= MAX_GPUS):
        raise ShoalError(f"{where}: gpus must be 1 to {MAX_GPUS}, but is '{gpus}'")
    if address is not None and not names.ADDRESS.fullmatch(address):
        raise ShoalError(f"{where}: address must be an IPv4 address, such as 10.0.0.1, but is '{address}'")
    return Host(
        name=found["name"],
        user=found["user"],
        port=int(port) if port else None,
        gpus=int(gpus) if gpus else None,
        address=address,
        python=options.get("python", "python3"),
    )
