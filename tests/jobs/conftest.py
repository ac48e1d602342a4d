"""What tests of jobs share: small files, too, are read by several tasks at once."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def every_core_is_worth_it() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jobs.pipeline.CORE_BYTES", 1)
        yield
