"""Emulates the network of a node in a private subnet on this machine: the S3 endpoint and the metadata service.

Run it in the network namespace of the node: `python vpc.py FOLDER NODE`. FOLDER has objects at BUCKET/KEY, and the
certificate of the endpoint; the file `ready` appears there when both services answer. NODE is the root of the node. The
clock of the node is wrong by the seconds in /etc/clock until the node sets it (/run/clock).
"""

import json
import ssl
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

S3, METADATA = ("127.0.0.2", 443), ("169.254.169.254", 80)
INSTANCE = "i-0123456789abcdef0"
_ROLE = "meta-data/iam/security-credentials/"
_SKEW = timedelta(minutes=15)


def _seconds(path: Path) -> timedelta:
    return timedelta(seconds=int(path.read_text()) if path.exists() else 0)


class _Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path
    node: Path

    def now(self) -> datetime:
        """Return the time by the node's clock."""
        return datetime.now(UTC) + _seconds(self.node / "etc" / "clock")

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def date_time_string(self, _timestamp: float | None = None) -> str:
        return format_datetime(self.now(), usegmt=True)

    def log_message(self, *_said: object) -> None:
        """Print nothing on the node's console."""


class _S3(_Service):
    def do_PUT(self) -> None:
        if (path := self._allowed()) is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._body())
            self.answer(200, ETag='"written"')

    def do_GET(self) -> None:
        if (path := self._allowed()) is not None:
            if path.is_file():
                status, body, part = self._part(path.read_bytes())
                written = format_datetime(self.now(), usegmt=True)
                self.answer(status, body, **{"ETag": '"read"', "Last-Modified": written, **part})
            else:
                self._refuse(404, "NoSuchKey", "The specified key does not exist.")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _allowed(self) -> Path | None:
        """Return the path of the requested object, or None if the request was refused."""
        signed = self.headers.get("X-Amz-Date")
        host = self.headers["Host"].split(".")[0]
        path = self.folder / host / self.path.partition("?")[0].lstrip("/")
        if host.startswith("al2023-repos-"):  # everybody may read Amazon Linux's packages
            return path
        if signed is None:
            self._refuse(403, "AccessDenied", "Access Denied")
            return None
        at = datetime.strptime(signed, "%Y%m%dT%H%M%S%z") + _seconds(self.node / "run" / "clock")
        if abs(at - self.now()) > _SKEW:
            message = "The difference between the request time and the current time is too large."
            self._refuse(403, "RequestTimeTooSkewed", message)
            return None
        return path

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._body()
        self.answer(status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        framed = b"".join(self._chunks())  # HTTP chunks, and within them those of S3, with a checksum at the end
        size, _, rest = framed.partition(b"\r\n")
        return rest[: int(size, 16)]

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _part(self, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """Return the status, the requested bytes of an object, and the headers of the response."""
        first, _, last = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if not first:
            return 200, body, {}
        asked = body[int(first) : int(last) + 1 if last else None]
        return 206, asked, {"Content-Range": f"bytes {first}-{int(first) + len(asked) - 1}/{len(body)}"}


class _Metadata(_Service):
    def do_PUT(self) -> None:
        self.answer(200, b"token")

    def do_GET(self) -> None:
        credentials = {"Code": "Success", "AccessKeyId": "key", "SecretAccessKey": "secret", "Token": "token"}
        credentials["Expiration"] = f"{self.now() + timedelta(hours=6):%Y-%m-%dT%H:%M:%SZ}"
        said = {
            "meta-data/instance-id": INSTANCE,
            "meta-data/local-ipv4": "10.0.1.20",
            _ROLE: "node",
            f"{_ROLE}node": json.dumps(credentials),
        }.get(self.path.removeprefix("/latest/"))
        self.answer(404 if said is None else 200, (said or "").encode())


if __name__ == "__main__":
    _Service.folder, _Service.node = folder, _ = [Path(each) for each in sys.argv[1:]]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    endpoint, metadata = ThreadingHTTPServer(S3, _S3), ThreadingHTTPServer(METADATA, _Metadata)
    endpoint.socket = context.wrap_socket(endpoint.socket, server_side=True)
    threading.Thread(target=metadata.serve_forever).start()
    (folder / "ready").touch()
    endpoint.serve_forever()
