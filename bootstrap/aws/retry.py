"""Calls AWS again while the network is away, so that a minute without Wi-Fi does not end hours of work.

The user sees since when and until when it is tried, and can leave at once. Only transient errors are tried again:
expired credentials and refusals do not improve by waiting. The calls run in another thread than the one that receives
Ctrl-C, because no signal arrives during a DNS lookup or botocore's own retries.
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

from bootstrap.interrupt import Interrupt, mark_handled, name_of
from bootstrap.progress import note

Result = TypeVar("Result")

THROTTLED = ("Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown")
NOT_ACCEPTED = (
    "400",  # what S3 answers HEAD by, which has no body that could say more
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
"""Codes of errors of credentials."""


class Abandoned(Interrupt):
    """The user has left while AWS did not answer, so what runs there could not be stopped."""

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        super().__init__(signal.Signals[name_of(interrupt)])
        mark_handled(interrupt)


class Retrying:
    """Calls again, and remembers since when AWS has not answered. A process has one, because it has one network.

    seconds: how long a call is tried, if the call does not specify it.
    pause: seconds between two attempts.
    notice: seconds without an answer until the user is told.
    say: prints a sentence for the user.
    """

    def __init__(
        self, *, seconds: float = 600, pause: float = 2, notice: float = 5, say: Callable[[str], None] = note
    ) -> None:
        self.seconds, self.pause, self.notice, self.say = seconds, pause, notice, say
        self._since: float | None = None
        self._reported = False

    @property
    def unanswered(self) -> bool:
        """Whether the user was told that AWS does not answer, and it has not answered since."""
        return self._reported

    def __call__(self, call: Callable[[], Result], *, seconds: float | None = None) -> Result:
        """Return what `call` returns; call it again while the network is away, AWS throttles, or a service fails.

        After `seconds` without success its error is raised; any other error is raised at once.
        """
        until = time.monotonic() + (self.seconds if seconds is None else seconds)
        while True:
            began = time.monotonic()
            answer = _in_background(call)
            error: BotoCoreError | ClientError = ReadTimeoutError(endpoint_url="AWS")
            while not wait([answer], self.notice).done and time.monotonic() < until:
                self._note_missing(began, until)
            if answer.done():
                try:
                    result = answer.result()
                except (BotoCoreError, ClientError) as failed:
                    if not is_transient(failed):
                        self._note_answer()
                        raise
                    error = failed
                except Exception:  # raised by the code that reads the answer
                    self._note_answer()
                    raise
                else:
                    self._note_answer()
                    return result
            self._note_missing(began, until)
            if time.monotonic() >= until:
                raise error
            time.sleep(self.pause)

    def _note_missing(self, began: float, until: float) -> None:
        """Record that a call that began at `began` has no answer yet."""
        now = time.monotonic()
        self._since = began if self._since is None else self._since
        if not self._reported and now - self._since >= self.notice:
            self._reported = True
            since, end = (f"{datetime.now() + timedelta(seconds=at - now):%H:%M:%S}" for at in (self._since, until))
            self.say(f"AWS has not answered since {since}; Shoal tries again until {end}, or until Ctrl-C")

    def _note_answer(self) -> None:
        """Record that AWS has answered."""
        if self._reported and self._since is not None:
            self.say(f"AWS answers again, after {time.monotonic() - self._since:.0f} s")
        self._since, self._reported = None, False


retrying = Retrying()
"""The instance of this process."""


def is_transient(error: BotoCoreError | ClientError) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error.response["Error"]["Code"] in THROTTLED
    return isinstance(error, NoConnectionError | HTTPClientError)


def is_not_accepted(error: BotoCoreError | ClientError) -> bool:
    """Whether the credentials are at fault, as after a session has expired."""
    if isinstance(error, ClientError):
        return error.response["Error"].get("Code") in NOT_ACCEPTED
    return isinstance(error, NoCredentialsError | CredentialRetrievalError | SSOError | TokenRetrievalError)


def _in_background(call: Callable[[], Result]) -> "Future[Result]":
    """What a call will return. Its thread does not keep the process from ending, as a pool's threads would."""
    answer: Future[Result] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer
