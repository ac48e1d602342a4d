"""What hosts are sent once: Shoal's code for nodes, and a dataset, each below its digest in the folder they share."""

import hashlib
import io
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from bootstrap.hosts.connection import Connection
from bootstrap.hosts.group import HostGroup
from bootstrap.progress import Bars
from common.errors import ShoalError
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("common", "corpus", "trainer", "bootstrap/agent")
"""As infra/stack.py sends them to GPU nodes."""
_EARLY = (1980, 1, 1, 0, 0, 0)
"""The time of all files of the archive, so that its digest is that of their content."""
_UNPACK_SECONDS = 300.0


def send_code(hosts: HostGroup) -> str:
    """Send the code, if it is not there; returns the path of its folder. Raises ShoalError where it cannot be unpacked,
    and LostError."""
    packed = _packed()
    key = f"code/{hashlib.sha256(packed).hexdigest()[:32]}"
    if hosts.size(f"{key}/bootstrap/agent/host.py") is None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "code.zip"
            path.write_bytes(packed)
            hosts.put(path, f"{key}.zip")
        partial = f"{key}.{uuid4().hex}.partial"
        _run(hosts, ("-m", "zipfile", "-e", f"{hosts.name}/{key}.zip", f"{hosts.name}/{partial}"))
        hosts.rename(partial, key)
    return f"{hosts.name}/{key}"


def send_dataset(hosts: HostGroup, path: Path, bars: Bars) -> str:
    """Send a dataset, if it is not there; returns its key. Raises DataError for one that cannot be used."""
    with open_dataset(path) as opened:
        key = f"datasets/{opened.digest}/{DATASET_NAME}"
    size = path.stat().st_size
    bars.stage("send the dataset", size, "B")
    if hosts.size(key) != size:
        hosts.put(path, key, lambda done, _: bars.at(done))
    bars.at(size)
    return key


def _run(hosts: HostGroup, arguments: tuple[str, ...]) -> None:
    first = hosts.file.hosts[0]
    connection: Connection = hosts.connect(first)
    status, _, errors = connection.run((first.python, *arguments), seconds=_UNPACK_SECONDS)
    if status:
        last = errors.strip().splitlines()[-1:] or ["it said nothing"]
        raise ShoalError(f"{first.called}: {first.python} failed with status {status}: {last[0]}")


def _packed() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        sources = [_ROOT / "bootstrap" / "__init__.py"]
        sources += [path for package in _PACKAGES for path in sorted((_ROOT / package).rglob("*.py"))]
        for path in sources:
            archive.writestr(zipfile.ZipInfo(path.relative_to(_ROOT).as_posix(), _EARLY), path.read_bytes())
    return content.getvalue()
