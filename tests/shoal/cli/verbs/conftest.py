"""Fixture: AWS clients that all commands of a file share."""

from collections.abc import Iterator
from typing import Any

import pytest

from shoal.aws.account import Account


@pytest.fixture(scope="module")
def shared_clients(aws) -> Iterator[None]:
    """Let all commands of a file use the same clients. Otherwise most of their time would go into creating clients."""
    clients: dict[tuple[str, str], Any] = {}

    def client(self: Account, service: str, region: str | None = None) -> Any:
        key = service, region or self.region
        if key not in clients:
            clients[key] = self.session.client(service, region_name=key[1])  # type: ignore[call-overload]
        return clients[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Account, "client", client)
        yield
