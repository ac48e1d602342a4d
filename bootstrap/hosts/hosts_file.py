"""The file that names hosts of one's own.

A line a host, `user@host[:port]` with options of its own, or an option of all of them:

    folder=/srv/shoal                  a folder that all hosts share, or a bucket: s3://BUCKET; needed
    python=/opt/venv/bin/python        the Python that has PyTorch (default: python3)
    ann@10.0.0.1 gpus=2
    ann@10.0.0.2:2222 address=192.168.7.2
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from bootstrap.agent.documents import MOST_GPUS, MOST_NODES
from bootstrap.agent.node_documents import ADDRESS
from common.errors import DataError, ShoalError
from common.files import regular
from corpus.reading.s3 import is_s3, place_of
from infra import addresses

_HOST = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][\w.-]{0,63})@)?(?P<name>[A-Za-z0-9][A-Za-z0-9.-]{0,252})(?::(?P<port>\d{1,5}))?"
)
_PATH = re.compile(r"/[^\x00-\x1f\x7f]{0,1023}")
_OF_ALL, _OF_ONE = ("folder", "python"), ("gpus", "address", "python")


@dataclass(frozen=True, kw_only=True)
class Host:
    name: str
    """As SSH finds it: an address, a name, or an alias of ~/.ssh/config."""
    user: str | None
    port: int | None
    gpus: int | None
    """A rank each; None: those that it has, or one rank without any."""
    address: str | None
    """The IPv4 address at which the other hosts find it; None: that of its name."""
    python: str

    @property
    def called(self) -> str:
        """What a sentence names it."""
        return f"{f'{self.user}@' if self.user else ''}{self.name}{f':{self.port}' if self.port else ''}"

    @property
    def instance(self) -> str:
        """What agents call it, in the form of an instance's id."""
        return f"i-{sha256(self.called.encode()).hexdigest()[:17]}"


@dataclass(frozen=True, kw_only=True)
class HostsFile:
    """The hosts, and what they share."""

    path: Path
    folder: str
    """The path of a folder, or s3://BUCKET."""
    hosts: tuple[Host, ...]


def read_hosts(path: Path) -> HostsFile:
    """Read a file of hosts. Raises ShoalError with the line that cannot be used."""
    try:
        lines = regular(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ShoalError(f"cannot read the hosts in {path}: {reason}") from error
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
    hosts = tuple(_host(found, {**common, **own}, f"{path}, line {number}") for number, found, own in named)
    for host in hosts:
        if [each.called for each in hosts].count(host.called) > 1:
            raise ShoalError(f"{path} names {host.called} twice; name it once, with gpus=N for several ranks")
    if not 0 < len(hosts) <= MOST_NODES:
        raise ShoalError(f"{path} names {len(hosts):,} hosts; write 1 to {MOST_NODES:,}, a line each: user@host")
    if "folder" not in common:
        raise ShoalError(
            f"{path} names no folder that all hosts share; add a line such as folder=/srv/shoal, of a network file "
            "system, or of any folder where there is one host, or folder=s3://BUCKET"
        )
    return HostsFile(path=path, folder=_folder(common["folder"]), hosts=hosts)


def _options(words: list[str], known: tuple[str, ...], where: str) -> dict[str, str]:
    found: dict[str, str] = {}
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
                f"{where}: folder must be an absolute path, or s3://BUCKET for all of a bucket, but is '{value}'"
            )
        found[name] = value
    return found


def _is_bucket(address: str) -> bool:
    try:
        bucket, key = place_of(address)
    except DataError:
        return False
    return not key and addresses.BUCKET.fullmatch(bucket) is not None


def _folder(address: str) -> str:
    """Each in one form, as agents compare them."""
    return address.rstrip("/") if is_s3(address) else str(PurePosixPath(address))


def _host(found: re.Match[str], options: Mapping[str, str], where: str) -> Host:
    port, gpus, address = found["port"], options.get("gpus"), options.get("address")
    if port is not None and not 0 < int(port) < 1 << 16:
        raise ShoalError(f"{where}: {port} is no port; it must be 1 to 65535")
    if gpus is not None and not (gpus.isascii() and gpus.isdecimal() and 0 < int(gpus) <= MOST_GPUS):
        raise ShoalError(f"{where}: gpus must be 1 to {MOST_GPUS}, but is '{gpus}'")
    if address is not None and not ADDRESS.fullmatch(address):
        raise ShoalError(f"{where}: address must be like 10.0.0.1, but is '{address}'")
    return Host(
        name=found["name"],
        user=found["user"],
        port=int(port) if port else None,
        gpus=int(gpus) if gpus else None,
        address=address,
        python=options.get("python", "python3"),
    )
