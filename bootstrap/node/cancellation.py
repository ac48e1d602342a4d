"""Cancellation of an EMR step: kill the step's command first, and then the run's applications on YARN.

EMR kills the processes of a step that it cancels, but not the YARN applications that these processes submitted. The
order matters, because a command that still runs could submit one more application.
"""

import re
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import psutil
from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.node.documents import MAX_ERROR_LENGTH, Cancellation
from bootstrap.node.machine import call
from bootstrap.node.store import Bucket, StoredDocument
from common.display import printable
from common.errors import DataError
from common.names import step_name

_UNANSWERED = (Boto3Error, BotoCoreError, ClientError)
_YARN_SECONDS = 120
_ALIVE = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_APPLICATION = re.compile(r"application_[0-9]{1,20}_[0-9]{1,10}")


class StepWork:
    """Launch of preprocessing jobs to which an EMR step belongs."""

    def __init__(self, bucket: str, run: str, token: str) -> None:
        self._channel = Bucket(bucket)
        self._cancellation = Cancellation(run=run, token=token)
        self._known: StoredDocument | None = None

    def is_cancelled(self) -> bool:
        """Return whether this launch was cancelled. If S3 does not answer, return False, and the next call asks
        again."""
        try:
            document = self._channel.read(self._cancellation.key, self._known)
            if document is None or document is self._known:
                return False
            self._known = document
            return Cancellation.from_json(document.text) == self._cancellation
        except DataError as error:
            _say(f"Shoal cannot read the cancellation {self._cancellation.key}, and the step continues: {error}")
        except _UNANSWERED as error:
            _say(f"{type(error).__name__}: {error}")
        return False

    def end(self, client: "subprocess.Popen[bytes]") -> None:
        """Kill the command and the run's YARN applications, and write the answer to the cancellation."""
        answer = self._cancellation
        try:
            end_work(client, answer.run)
        except DataError as error:
            _say(str(error))
            answer = replace(answer, error=str(error)[:MAX_ERROR_LENGTH])
        try:
            self._channel.write(answer.answer_key, answer.to_json())
        except _UNANSWERED as error:
            _say(f"{type(error).__name__}: {error}")


def end_work(client: "subprocess.Popen[bytes]", run: str) -> None:
    """Kill a command and the YARN applications of a run. Raises DataError if YARN still runs some of them after two
    minutes."""
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(client.pid)
        for process in (parent, *parent.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.kill()
    client.wait()
    deadline = time.monotonic() + _YARN_SECONDS
    while left := _applications(run):
        if time.monotonic() > deadline:
            raise DataError(
                f"YARN still runs {', '.join(left)} {_YARN_SECONDS} seconds after Shoal asked it to stop them"
            )
        call(["yarn", "application", "-kill", *left])


def _applications(run: str) -> list[str]:
    name = step_name(run, "")
    listed = call(["yarn", "application", "-list", "-appStates", _ALIVE])
    words = [line.split() for line in listed.splitlines() if name in line]
    return [first for first, *_ in words if _APPLICATION.fullmatch(first)]


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)  # noqa: T201
