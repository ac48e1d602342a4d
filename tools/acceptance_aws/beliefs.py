"""Checks the emulator's beliefs about AWS on an account. No check costs money, because AWS should refuse each request.

A belief is confirmed if AWS refuses the request with the expected error. It is contradicted if AWS accepts the request,
or refuses it with a different error code. In all other cases it stays unchecked: the account may not make the request,
AWS was not reached, or the request was refused for a different reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from shoal.aws.account import Account
from tools.beliefs import beliefs, checks

CONFIRMED, CONTRADICTED, NOT_CHECKED = "confirmed", "contradicted", "not checked"
_UNRELATED = (
    "AccessDenied",
    "Unauthorized",
    "Throttl",
    "RequestLimitExceeded",
    "OptInRequired",
    "SubscriptionRequired",
)
"""Beginnings of error codes that do not depend on the fields of a request."""


@dataclass(frozen=True, kw_only=True)
class BeliefResult:
    """Result of the check of a belief. `detail` is AWS's answer, or the reason why it was not checked."""

    sentence: str
    outcome: str
    detail: str


def check_all(account: Account) -> Iterator[BeliefResult]:
    """Check each belief that has a check. Yield a result for every belief."""
    for belief in beliefs():
        outcome, detail = NOT_CHECKED, belief.detail
        if belief.kind == "Check":
            outcome, detail = check(account, checks()[belief.detail])
        yield BeliefResult(sentence=belief.sentence, outcome=outcome, detail=detail)


def check(account: Account, request: Mapping[str, Any]) -> tuple[str, str]:
    """Send the request of a check. Return the outcome and AWS's answer."""
    try:
        if before := request.get("before"):
            _send(account, *before)
    except (BotoCoreError, ClientError) as error:
        return NOT_CHECKED, str(error)
    try:
        outcome, detail = _compare(account, request)
        if outcome == CONTRADICTED and not detail and (undo := request.get("undo")):
            _send(account, request["service"], *undo)
    except BotoCoreError as error:
        outcome, detail = NOT_CHECKED, str(error)
    finally:
        if after := request.get("after"):
            _send(account, *after)
    return outcome, detail or "AWS accepts the request"


def _compare(account: Account, request: Mapping[str, Any]) -> tuple[str, str]:
    """Return the outcome of a request, and the error with which AWS refuses it; empty if AWS accepts it."""
    try:
        _send(account, request["service"], request["operation"], request["parameters"])
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code.startswith(_UNRELATED):
            return NOT_CHECKED, str(error)
        if code != request["code"]:
            return CONTRADICTED, str(error)
        meant = request.get("message", "").lower() in error.response["Error"]["Message"].lower()
        return CONFIRMED if meant else NOT_CHECKED, str(error)
    return CONTRADICTED, ""


def _send(account: Account, service: str, operation: str, parameters: Mapping[str, Any]) -> None:
    client = account.client(service)
    getattr(client, operation)(**_placed(parameters, client.meta.region_name))


def _placed(value: Any, region: str) -> Any:
    """Return parameters with the region in place of `{region}`."""
    if isinstance(value, dict):
        return {name: _placed(each, region) for name, each in value.items()}
    if isinstance(value, list):
        return [_placed(each, region) for each in value]
    return value.replace("{region}", region) if isinstance(value, str) else value
