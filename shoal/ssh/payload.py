"""Transfer of Shoal's code to hosts. The code is sent to each host once, into a folder of ~/.shoal with the code's
digest as its name."""

import hashlib
import io
import posixpath
import zipfile
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import shoal_balance

from bootstrap.node.folder import exists, make_folder
from common.errors import ShoalError
from shoal.ssh.connection import Connection

_ROOT = Path(__file__).parents[2]
_PACKAGES = {
    **dict.fromkeys(("common", "corpus", "trainer", "bootstrap/node"), _ROOT),
    "shoal_balance": Path(shoal_balance.__file__).parents[1],  # in a checkout, this package is outside of `_ROOT`
}
"""Packages that GPU nodes need (as in infra/stack.py), with the folders that contain them. On a host, all packages are
in one folder."""
_EARLY = (1980, 1, 1, 0, 0, 0)
"""Timestamp of all files in the archive, so that the archive's digest depends only on the names and content of the
files."""
_UNPACK_SECONDS = 300.0


class CodePayload:
    def __init__(self) -> None:
        self._packed = _packed()
        self._name = hashlib.sha256(self._packed).hexdigest()[:32]

    def install(self, connection: Connection) -> str:
        """Return the folder of the code on a host. If the code is missing there, send it first.

        Raises ShoalError if the host cannot store the code, and LostError if the host does not answer.
        """
        folder = f"{connection.home}/.shoal/code/{self._name}"
        try:
            with connection.answering():
                if not exists(connection.files, f"{folder}/bootstrap/node/host.py"):
                    self._send(connection, folder)
        except OSError as error:
            raise ShoalError(
                f"cannot copy Shoal's code to {connection.host.label}:{folder}: {error.strerror or error}; give the "
                "host's user write permission, or free some space"
            ) from error
        return folder

    def _send(self, connection: Connection, folder: str) -> None:
        files, partial = connection.files, f"{folder}.{uuid4().hex}.partial"
        make_folder(files, posixpath.dirname(folder))
        try:
            files.putfo(io.BytesIO(self._packed), f"{partial}.zip")
            _unpack(connection, f"{partial}.zip", partial)
        finally:
            with suppress(OSError):
                files.remove(f"{partial}.zip")
        try:
            files.rename(partial, folder)
        except OSError:
            if not exists(files, folder):  # a host with the same home folder can have created it
                raise


def _unpack(connection: Connection, path: str, folder: str) -> None:
    host = connection.host
    status, _, errors = connection.run((host.python, "-m", "zipfile", "-e", path, folder), seconds=_UNPACK_SECONDS)
    if status:
        last = errors.strip().splitlines()[-1:] or ["no error message"]
        raise ShoalError(f"{host.label}: {host.python} failed with status {status}: {last[0]}")


def _packed() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        sources = {"bootstrap/__init__.py": _ROOT / "bootstrap" / "__init__.py"}
        for package, root in _PACKAGES.items():
            files = {path.relative_to(root).as_posix(): path for path in sorted((root / package).rglob("*.py"))}
            if not files:
                raise ShoalError(f"{root / package} has no Python files; install Shoal again")
            sources |= files
        for name, path in sources.items():
            archive.writestr(zipfile.ZipInfo(name, _EARLY), path.read_bytes())
    return content.getvalue()
