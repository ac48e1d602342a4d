"""An AWS account in one region: its clients, its services' lists, and the tags in them.

Use these clients again, because creating one takes longer than most calls. Keep the short timeouts: with botocore's
defaults a call without a network fails only after minutes.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import EnvProvider

from common.aws_session import core_session

ResourceRecord = Mapping[str, Any]
"""A resource in the answer of a service's list operation."""


_CONFIG = Config(connect_timeout=5, read_timeout=20)


def connect(region: str | None = None, config: Config = _CONFIG) -> boto3.Session:
    """A session whose clients fail soon without a network; without a region, in that of the AWS configuration."""
    core = core_session()
    core.set_default_client_config(config)
    return boto3.Session(botocore_session=core, region_name=region)


def credentials_end(session: boto3.Session) -> datetime | None:
    """When the session's credentials end; None where nobody tells, or botocore renews them, as those of a role."""
    credentials = session.get_credentials()
    if credentials is None or credentials.method != EnvProvider.METHOD:
        return None
    try:
        end = datetime.fromisoformat(os.environ.get(EnvProvider.EXPIRY_TIME, ""))
    except ValueError:
        return None
    return end if end.tzinfo else end.replace(tzinfo=UTC)


def credentials_warning(session: boto3.Session, seconds: float, what: str, then: str) -> str | None:
    """What to tell before work that takes about so many seconds, where the session's credentials end before it.

    `what` is the work, and `then` what happens at their end and what to do, as the rest of a sentence.
    """
    end, done = credentials_end(session), datetime.now(UTC) + timedelta(seconds=seconds)
    if end is None or end >= done:
        return None
    return (
        f"your AWS credentials end at {end.astimezone(UTC):%Y-%m-%d %H:%M} UTC, and {what} is expected to last until "
        f"about {done:%Y-%m-%d %H:%M} UTC; {then}"
    )


class Account:
    """Clients, each created once, and the services' lists, page by page."""

    def __init__(self, session: boto3.Session | None = None) -> None:
        self.session = session or connect()
        self._clients: dict[str, Any] = {}

    @property
    def region(self) -> str:
        return str(self.session.region_name)

    def client(self, service: str, region: str | None = None) -> Any:
        key = f"{service} {region or ''}"
        if key not in self._clients:
            self._clients[key] = self.session.client(service, region_name=region)  # type: ignore[call-overload]
        return self._clients[key]

    def number(self) -> str:
        """The account's id, 12 digits."""
        return str(self.client("sts").get_caller_identity()["Account"])

    def pages(self, service: str, operation: str, **parameters: Any) -> Iterator[ResourceRecord]:
        client = self.client(service)
        if client.can_paginate(operation):
            yield from client.get_paginator(operation).paginate(**parameters)
        else:
            yield getattr(client, operation)(**parameters)

    def items(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Any]:
        """The items that those pages have under `key`."""
        for page in self.pages(service, operation, **parameters):
            yield from page.get(key) or ()


def read_tags(tags: Iterable[Mapping[str, Any]] | Mapping[str, str] | None) -> dict[str, str]:
    """Tags by name, from any of the forms that AWS's services use."""
    if isinstance(tags, Mapping):
        return dict(tags)
    pairs = ({key.lower(): value for key, value in tag.items()} for tag in tags or ())
    return {pair["key"]: pair.get("value", "") for pair in pairs}
