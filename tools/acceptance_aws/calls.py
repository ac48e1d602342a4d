"""Which operations of AWS were asked for, and how they were answered.

The commands tell by botocore's client-side monitoring, a datagram a call. What acts beside them (the CDK's command,
CloudFormation, functions, nodes) is not counted.
"""

import json
import socket
from collections.abc import Iterable
from contextlib import suppress
from copy import deepcopy
from threading import Lock, Thread
from types import TracebackType
from typing import Self

import botocore.session

Calls = dict[str, dict[str, int]]
"""By `SERVICE OPERATION`, as boto3 and the API name them: how many calls had which code; that of a success is `ok`."""
_MOST_BYTES = 8192
SUCCESS = "ok"


def note(calls: Calls, service: str, operation: str, code: str) -> None:
    """Count a call."""
    codes = calls.setdefault(f"{service} {operation}", {})
    codes[code] = codes.get(code, 0) + 1


class CallListener:
    """Counts the calls of all processes with its `environment`, in a `with` block.

    The datagrams of single attempts have keys in them, and are not looked at.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._calls: Calls = {}
        self._lock = Lock()
        models = botocore.session.get_session()
        self._services = {models.get_service_model(each).service_id: each for each in services}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = Thread(target=self._listen, daemon=True)

    @property
    def calls(self) -> Calls:
        """What was counted so far."""
        with self._lock:
            return deepcopy(self._calls)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which botocore reports here."""
        host, port = self._socket.getsockname()
        return {"AWS_CSM_ENABLED": "true", "AWS_CSM_HOST": host, "AWS_CSM_PORT": str(port)}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                said = self._socket.recv(_MOST_BYTES)
            except OSError:
                return
            if not said:
                return
            event = json.loads(said)
            if event["Type"] == "ApiCall":
                code = event.get("FinalAwsException") or event.get("FinalSdkException")
                status = event.get("FinalHttpStatusCode", 0)
                service = self._services.get(event["Service"], event["Service"])
                with self._lock:
                    note(self._calls, service, event["Api"], code or (SUCCESS if status < 400 else str(status)))
