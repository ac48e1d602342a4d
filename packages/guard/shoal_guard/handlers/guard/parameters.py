"""Parses and formats the parameters that store the guard's state between rounds, and the extension in hours.

Do not trust their text, because other programs may write a parameter. An invalid number or a time in the future would
disable the guard forever, so all values are checked here.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from .rules import GuardState, SentNotice

MOST_HOURS = 100_000.0
"""Largest total extension in hours."""
_MOST_DOLLARS = 1e12
_NOTICES = "told"
"""Name of the field for sent warnings in the stored JSON. Do not change it, because deployed guards have stored it."""
_AHEAD = timedelta(days=1)
"""How far a stored time may lie ahead of the round. AWS repeats a failed round with its old time, hours later."""


def read_account(text: str, now: datetime) -> GuardState:
    """Parse the text that `write_account` returned.

    Raises ValueError. Its message continues a sentence that begins with the parameter's name.
    """
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    if not isinstance(read, Mapping):
        raise ValueError("is not a JSON object")
    notices = read.get(_NOTICES, {})
    if not isinstance(notices, Mapping) or not all(isinstance(each, Mapping) for each in notices.values()):
        raise ValueError(f"has an invalid field `{_NOTICES}` (the sent warnings)")
    as_of = read.get("as_of")
    return GuardState(
        spent=_amount(read.get("spent", 0.0)),
        as_of=None if as_of is None else _time(as_of, now),
        rate=_amount(read.get("rate", 0.0)),
        by_use=_amount(read.get("by_use", 0.0)),
        since=None if read.get("since") is None else _time(read["since"], now),
        notices={
            name: SentNotice(value=str(each.get("value")), at=_time(each.get("at"), now))
            for name, each in notices.items()
        },
    )


def write_account(account: GuardState) -> str:
    document = asdict(account)
    document[_NOTICES] = document.pop("notices")
    return json.dumps(document, default=datetime.isoformat)


def read_extension(text: str) -> float:
    """Parse the extension in hours.

    Raises ValueError. Its message continues a sentence that begins with the parameter's name.
    """
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if not 0 <= hours <= MOST_HOURS:
        raise ValueError(f"is not a number of hours from 0 to {MOST_HOURS:g}")
    return hours


def _amount(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_DOLLARS:
        raise ValueError(f"has {value!r} instead of an amount of dollars")
    return float(value)


def _time(value: Any, now: datetime) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"has {value!r} instead of a time") from None
    if time.tzinfo is None or time > now + _AHEAD:
        raise ValueError(f"has the time {value!r}, which is in the future or has no time zone")
    return time
