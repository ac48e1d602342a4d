"""Calls to AWS that outlast a dropped network: who watches hours of work must not end it for a minute without Wi-Fi.

Whoever waits is told so, since when and until when, and can leave at once. The easy mistake is to try
everything again: expired credentials and refusals never get better by waiting. Another is to call from the thread that
Ctrl-C reaches: while it looks up a name, or the library tries again by itself, no signal gets through.
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
    HTTPClientError,
    ReadTimeoutError,
)
from botocore.exceptions import (
    ConnectionError as NoConnectionError,
)

from bootstrap.interrupt import Interrupt, mark_handled, name_of
from bootstrap.progress import note

Result = TypeVar("Result")

THROTTLED = ("Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException", "SlowDown")


class Abandoned(Interrupt):
    """The user leaves though AWS does not answer, so that nobody could be asked to end what goes on there."""

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        super().__init__(signal.Signals[name_of(interrupt)])
        mark_handled(interrupt)


class Retrying:
    """What tries calls again, and knows since when AWS has owed an answer; a process has one, as it has one network.

    seconds: how long a call is tried, unless it is said otherwise.
    pause: seconds between two attempts.
    notice: after so many seconds without an answer it is said.
    say: takes what is said.
    """

    def __init__(
        self, *, seconds: float = 600, pause: float = 2, notice: float = 5, say: Callable[[str], None] = note
    ) -> None:
        self.seconds, self.pause, self.notice, self.say = seconds, pause, notice, say
        self._since: float | None = None
        self._reported = False

    @property
    def unanswered(self) -> bool:
        """Whether it was said that AWS does not answer, and it has not answered since."""
        return self._reported

    def __call__(self, call: Callable[[], Result], *, seconds: float | None = None) -> Result:
        """What `call` returns; it is called again while the network is away, AWS throttles, or a service fails.

        After so many seconds without success its error is raised; any other error at once.
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
                except Exception:  # what became of an answer
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
        """Note that a call that began then has no answer yet."""
        now = time.monotonic()
        self._since = began if self._since is None else self._since
        if not self._reported and now - self._since >= self.notice:
            self._reported = True
            since, end = (f"{datetime.now() + timedelta(seconds=at - now):%H:%M:%S}" for at in (self._since, until))
            self.say(f"AWS has not answered since {since}; it is asked again until {end}, or until Ctrl-C")

    def _note_answer(self) -> None:
        """Note that AWS has answered."""
        if self._reported and self._since is not None:
            self.say(f"AWS answers again, after {time.monotonic() - self._since:.0f} s")
        self._since, self._reported = None, False


retrying = Retrying()
"""The one of this process."""


def is_transient(error: BotoCoreError | ClientError) -> bool:
    """Whether the same call may succeed later."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or error.response["Error"]["Code"] in THROTTLED
    return isinstance(error, NoConnectionError | HTTPClientError)


def _in_background(call: Callable[[], Result]) -> "Future[Result]":
    """What a call will return. Its thread keeps no process from ending, as those of a pool would."""
    answer: Future[Result] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer
