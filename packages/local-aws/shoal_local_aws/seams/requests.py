"""The current request: its account and region, response formats, and threads for background work."""

from collections.abc import Callable
from typing import Any, Protocol

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Record, Table

_responses = MinistackModule("core.responses")


class _Spawn(Protocol):
    def __call__(self, function: Callable[..., Any], *arguments: Any, thread_name: str) -> Any: ...


account: Callable[[], str] = _responses.take("get_account_id")
"""Returns the account id of the current request."""

region: Callable[[], str] = _responses.take("get_region")
"""Returns the region of the current request."""

now: Callable[[], str] = _responses.take("now_iso")
"""Returns the current time in AWS's format."""

json_answer: Callable[[Record], Answer] = _responses.take("json_response")
"""Returns a response in the JSON protocol."""

json_error: Callable[[str, str], Answer] = _responses.take("error_response_json")
"""Returns an error response in the JSON protocol, with status 400. Arguments: error code, message."""

streamed: Callable[[Callable[[Any, Any], Any]], Any] = _responses.take("StreamingResponse")
"""Returns a response body that a coroutine sends. The arguments of the coroutine are the functions to send and
receive."""

spawn_background: _Spawn = MinistackModule("core.concurrency").take("spawn_background")
"""Runs a function on a new thread, with the account and region of the current request."""

regional_table: Callable[[], Table] = _responses.take("AccountRegionScopedDict")
"""Returns a new table with separate records for each account and region."""
