"""Finds out whether the emulator that the environment names does not run.

Look at an error's whole chain of causes, because libraries wrap the error that names the address.
"""

import os
import socket
from urllib.parse import urlsplit

from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, SSLError

from common.errors import ShoalError
from infra.caller import emulated

START = "no emulator answers there: start `shoal embedded`, and use the environment that it prints"
"""The advice for that case."""


def is_gone(error: BaseException | None) -> bool:
    """Whether an error, or one of its causes, is that nothing answers at an address of this machine."""
    while error is not None:
        # Behind an SSLError something answers, or the CA bundle cannot be read.
        if (
            isinstance(error, NoConnectionError | HTTPClientError)
            and not isinstance(error, SSLError)
            and emulated(str(error.kwargs.get("endpoint_url", "")))
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def require_s3() -> None:
    """Raise ShoalError where S3 is emulated and the emulator does not run.

    Without this check the readers would try again for more than a minute, as they do on a cluster.
    """
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
