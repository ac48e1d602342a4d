"""Whether an error says that the emulator, which this machine's environment names, is not there.

The easy mistake is to look at the error alone: a library wraps what it met, and the sentence for a person wraps that.
"""

import os
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError

from bootstrap.errors import ShoalError
from infra.caller import emulated

START = "no emulator answers there: start `shoal embedded`, and use the environment that it prints"
"""What to do then."""


def is_gone(error: BaseException) -> bool:
    """Whether nobody answers at an address of this machine, by an error or by what it was raised from."""
    return any(
        isinstance(each, NoConnectionError | HTTPClientError) and emulated(str(each.kwargs.get("endpoint_url", "")))
        for each in _chain(error)
    )


def require_s3() -> None:
    """Raise ShoalError where S3 is to be asked on this machine, and nobody listens there: what reads from it would go
    on asking for more than a minute, as it does on a cluster."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if not emulated(endpoint):
        return
    parts = urlsplit(endpoint)
    try:
        socket.create_connection(
            (str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)), timeout=5
        ).close()
    except (OSError, ValueError) as error:
        raise ShoalError(f"there is no S3 at {endpoint} ({error}); {START}") from error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
