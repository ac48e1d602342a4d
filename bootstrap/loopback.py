"""Whether an error says that the emulator, which this machine's environment names, is not there.

The easy mistake is to look at the error alone: a library wraps what it met, and the sentence for a person wraps that.
"""

from collections.abc import Iterator

from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError

from infra.caller import emulated

START = "no emulator answers there: start `shoal embedded`, and use the environment that it prints"
"""What to do then."""


def is_gone(error: BaseException) -> bool:
    """Whether nobody answers at an address of this machine, by an error or by what it was raised from."""
    return any(
        isinstance(each, NoConnectionError | HTTPClientError) and emulated(str(each.kwargs.get("endpoint_url", "")))
        for each in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
