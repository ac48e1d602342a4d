"""Calls to AWS that outlast a dropped network: who watches hours of work must not end it for a minute without Wi-Fi.

The easy mistake is to be patient with everything: expired credentials and refusals never get better by waiting.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
)
from botocore.exceptions import (
    ConnectionError as NoConnectionError,
)

Result = TypeVar("Result")

PATIENCE_SECONDS = 600.0
_PAUSE_SECONDS = 2.0
THROTTLED = ("Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown")


def patiently(
    call: Callable[[], Result], *, seconds: float = PATIENCE_SECONDS, pause: float = _PAUSE_SECONDS
) -> Result:
    """What `call` returns; it is called again while the network is away, AWS throttles, or a service fails.

    After so many seconds without success its error is raised; any other error at once.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            if not is_transient(error) or time.monotonic() > deadline:
                raise
        time.sleep(pause)


def is_transient(error: BotoCoreError | ClientError) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error.response["Error"]["Code"] in THROTTLED
    return isinstance(error, NoConnectionError | HTTPClientError)
