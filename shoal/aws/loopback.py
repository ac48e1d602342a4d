"""Checks whether the emulator that the environment selects is running.

Look at all causes of an error, because libraries wrap the error that names the address.
"""

import os
import socket
from urllib.parse import urlsplit

from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, SSLError

from common.errors import ShoalError
from infra.caller import is_local

START = "no emulator answers there: start `shoal embedded`, and use the environment that it prints"
"""End of an error message: what to do if the emulator does not answer."""


def is_unreachable(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, means that the emulator on this machine does not answer."""
    while error is not None:
        # An SSLError means that something answers, or that the CA bundle is unreadable.
        if (
            isinstance(error, NoConnectionError | HTTPClientError)
            and not isinstance(error, SSLError)
            and is_local(str(error.kwargs.get("endpoint_url", "")))
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def require_s3() -> None:
    """Raise ShoalError if the endpoint of S3 is on this machine and does not answer.

    Without this check, readers would retry for more than a minute, as they do on a cluster.
    """
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    if not is_local(endpoint):
        return
    parts = urlsplit(endpoint)
    try:
        socket.create_connection(
            (str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)), timeout=5
        ).close()
    except (OSError, ValueError) as error:
        raise ShoalError(f"Shoal cannot reach S3 at {endpoint} ({error}); {START}") from error
