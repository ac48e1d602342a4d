"""Retries of AWS calls while the network is down, so that a minute without Wi-Fi does not abort hours of work.

Messages state when the outage started and until when Shoal retries. The user can leave at any time with Ctrl-C. Only
transient errors are retried, because waiting does not help with expired credentials or refused requests. The calls run
in a separate thread: in the main thread, a DNS lookup or botocore's own retries would delay Ctrl-C.
"""

import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from datetime import datetime, timedelta
from typing import TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    ReadTimeoutError,
    SSOError,
    TokenRetrievalError,
)
from botocore.exceptions import (
    ConnectionError as NoConnectionError,
)

from common.progress import reporter
from shoal.interrupt import Interrupt, name_of

Result = TypeVar("Result")

THROTTLED = ("Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown")
CREDENTIAL_ERRORS = (
    "400",  # S3's answer to HEAD has no body with an error code, only this status
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
)
"""Error codes of invalid or expired credentials."""


class Abandoned(Interrupt):
    """Interrupt by the user while AWS did not answer. Shoal could therefore not stop the resources that run on AWS."""

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        super().__init__(signal.Signals[name_of(interrupt)])


class Retrying:
    """Callable that retries AWS calls, and records since when AWS has not answered.

    A process has one instance, because it has one network.

    seconds: default time limit for all attempts of a call together.
    pause: seconds between two attempts.
    notice: seconds without an answer after which the user is notified.
    say: function that prints a message for the user.
    """

    def __init__(
        self,
        *,
        seconds: float = 600,
        pause: float = 2,
        notice: float = 5,
        say: Callable[[str], None] = lambda text: reporter().note(text),
    ) -> None:
        self.seconds, self.pause, self.notice, self.say = seconds, pause, notice, say
        self._outage_started: float | None = None
        self._reported = False

    @property
    def unanswered(self) -> bool:
        """True if the user has been notified that AWS does not answer, and AWS has not answered since then."""
        return self._reported

    def __call__(self, call: Callable[[], Result], *, seconds: float | None = None) -> Result:
        """Return the result of `call`. Repeat `call` while the network is down, AWS throttles requests, or a service
        fails.

        Raises the last transient error after `seconds` without success. Any other error is raised at once.
        """
        until = time.monotonic() + (self.seconds if seconds is None else seconds)
        while True:
            started = time.monotonic()
            answer = _in_background(call)
            error: BotoCoreError | ClientError = ReadTimeoutError(endpoint_url="AWS")
            while not wait([answer], self.notice).done and time.monotonic() < until:
                self._record_missing_answer(started, until)
            if answer.done():
                try:
                    result = answer.result()
                except (BotoCoreError, ClientError) as failed:
                    if not is_transient(failed):
                        self._record_answer()
                        raise
                    error = failed
                except Exception:  # raised by code that reads AWS's answer
                    self._record_answer()
                    raise
                else:
                    self._record_answer()
                    return result
            self._record_missing_answer(started, until)
            if time.monotonic() >= until:
                raise error
            time.sleep(self.pause)

    def _record_missing_answer(self, started: float, until: float) -> None:
        now = time.monotonic()
        self._outage_started = started if self._outage_started is None else self._outage_started
        if not self._reported and now - self._outage_started >= self.notice:
            self._reported = True
            since, end = (
                f"{datetime.now() + timedelta(seconds=at - now):%H:%M:%S}" for at in (self._outage_started, until)
            )
            self.say(f"AWS has not answered since {since}; Shoal retries until {end}; press Ctrl-C to leave")

    def _record_answer(self) -> None:
        if self._reported and self._outage_started is not None:
            self.say(f"AWS answers again after {time.monotonic() - self._outage_started:.0f} s")
        self._outage_started, self._reported = None, False


retrying = Retrying()
"""The only instance in this process."""


def is_transient(error: BotoCoreError | ClientError) -> bool:
    """Return whether the same call could succeed if it is repeated later."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error.response["Error"]["Code"] in THROTTLED
    return isinstance(error, NoConnectionError | HTTPClientError)


def is_credentials_error(error: BotoCoreError | ClientError) -> bool:
    """Return whether the credentials caused an error, for example because the session has expired."""
    if isinstance(error, ClientError):
        return error.response["Error"].get("Code") in CREDENTIAL_ERRORS
    return isinstance(error, NoCredentialsError | CredentialRetrievalError | SSOError | TokenRetrievalError)


def _in_background(call: Callable[[], Result]) -> "Future[Result]":
    """Start a call in a daemon thread. Unlike the threads of a pool, such a thread does not prevent the process from
    exiting."""
    answer: Future[Result] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer
