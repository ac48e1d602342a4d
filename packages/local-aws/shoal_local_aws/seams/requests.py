"""The current request: its account and region, forms of answers, and background work that it starts."""

from collections.abc import Callable
from typing import Any, Protocol

from shoal_local_aws.seams.lookup import Answer, MinistackModule, Record, Table

_responses = MinistackModule("core.responses")


class _Spawn(Protocol):
    def __call__(self, function: Callable[..., Any], *arguments: Any, thread_name: str) -> Any: ...


account: Callable[[], str] = _responses.take("get_account_id")
"""The account of the request."""

region: Callable[[], str] = _responses.take("get_region")
"""The region of the request."""

now: Callable[[], str] = _responses.take("now_iso")
"""The current time, as AWS writes it."""

json_answer: Callable[[Record], Answer] = _responses.take("json_response")
"""A result in the JSON protocol."""

json_error: Callable[[str, str], Answer] = _responses.take("error_response_json")
"""An error in the JSON protocol: its code and message. The status is 400."""

streamed: Callable[[Callable[[Any, Any], Any]], Any] = _responses.take("StreamingResponse")
"""The body of an answer that a coroutine sends, from its functions to send and to receive."""

spawn_background: _Spawn = MinistackModule("core.concurrency").take("spawn_background")
"""Run a function on a thread of its own, for the request's account and region."""

regional_table: Callable[[], Table] = _responses.take("AccountRegionScopedDict")
"""A new table with separate records for each account and region."""
