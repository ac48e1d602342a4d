"""Makes JSON that is nested too deeply invalid JSON, as AWS's services answer. Python raises a RecursionError, which
ministack does not expect, so it would answer with status 500."""

import json
from typing import Any


def install() -> None:
    """Replace the decoder's method, because ministack decodes JSON in hundreds of places."""
    decode = json.JSONDecoder.decode

    def decoded(self: json.JSONDecoder, text: str, *more: Any) -> Any:
        try:
            return decode(self, text, *more)
        except RecursionError:
            raise json.JSONDecodeError("nested too deeply", text, 0) from None

    json.JSONDecoder.decode = decoded  # type: ignore[assignment,method-assign]
