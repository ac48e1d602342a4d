"""An account of AWS in one region, as what lists and deletes things in it sees it.

The easy mistake is a client for every question: making one costs more than most answers do. Another is to leave
botocore's own timeouts: without a network it would wait for minutes before it fails.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import botocore.session
from botocore.config import Config

ResourceRecord = Mapping[str, Any]
"""What a service's list says of one thing."""


_CONFIG = Config(connect_timeout=5, read_timeout=20)


def connect(region: str | None = None, config: Config = _CONFIG) -> boto3.Session:
    """A session whose clients notice soon that there is no network; without a region, in that of the configuration."""
    core = botocore.session.get_session()
    core.set_default_client_config(config)
    return boto3.Session(botocore_session=core, region_name=region)


class Account:
    """Clients, each made once, and the lists of services page by page."""

    def __init__(self, session: boto3.Session | None = None) -> None:
        self.session = session or connect()
        self._clients: dict[str, Any] = {}

    @property
    def region(self) -> str:
        """Where it looks."""
        return str(self.session.region_name)

    def client(self, service: str, region: str | None = None) -> Any:
        """The service's client, here or in another region."""
        key = f"{service} {region or ''}"
        if key not in self._clients:
            self._clients[key] = self.session.client(service, region_name=region)  # type: ignore[call-overload]
        return self._clients[key]

    def number(self) -> str:
        """The account's number."""
        return str(self.client("sts").get_caller_identity()["Account"])

    def pages(self, service: str, operation: str, **parameters: Any) -> Iterator[ResourceRecord]:
        """The answers of a list operation, page by page."""
        client = self.client(service)
        if client.can_paginate(operation):
            yield from client.get_paginator(operation).paginate(**parameters)
        else:
            yield getattr(client, operation)(**parameters)

    def items(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Any]:
        """What those pages hold under a key."""
        for page in self.pages(service, operation, **parameters):
            yield from page.get(key) or ()
