"""An AWS account in one region: its boto3 clients, the items of list operations, and their tags.

Reuse these clients, because creating a client takes longer than most calls. Keep the short timeouts, because with
botocore's defaults a call without a network fails only after minutes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError

ResourceRecord = Mapping[str, Any]
"""A resource as a service's list operation returns it."""
SHORT_TIMEOUTS = Config(connect_timeout=5, read_timeout=20)


class Account:
    """Cached boto3 clients of an account and region."""

    def __init__(self, session: boto3.Session) -> None:
        self.session = session
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
        """Return the account's id of 12 digits.

        Raises CredentialRetrievalError, a BotoCoreError, for expired credentials in the environment or a missing
        `credential_process`. For these, botocore itself raises plain Python errors.
        """
        try:
            if credentials := self.session.get_credentials():
                credentials.get_frozen_credentials()
        except (RuntimeError, OSError, ValueError, LookupError, TypeError) as error:
            if isinstance(error, BotoCoreError):
                raise
            raise CredentialRetrievalError(provider="AWS's configuration", error_msg=str(error)) from error
        return str(self.client("sts").get_caller_identity()["Account"])

    def pages(self, service: str, operation: str, **parameters: Any) -> Iterator[ResourceRecord]:
        client = self.client(service)
        if client.can_paginate(operation):
            yield from client.get_paginator(operation).paginate(**parameters)
        else:
            yield getattr(client, operation)(**parameters)

    def items(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Any]:
        """Yield the items under `key` from all pages of a list operation."""
        for page in self.pages(service, operation, **parameters):
            yield from page.get(key) or ()


def read_tags(tags: Iterable[Mapping[str, Any]] | Mapping[str, str] | None) -> dict[str, str]:
    """Return tags as a dictionary, from any of the formats that AWS's services use."""
    if isinstance(tags, Mapping):
        return dict(tags)
    pairs = ({key.lower(): value for key, value in tag.items()} for tag in tags or ())
    return {pair["key"]: pair.get("value", "") for pair in pairs}


def reason_of(error: BotoCoreError | ClientError) -> str:
    """Return AWS's error message, or the reason why AWS did not answer."""
    message = error.response["Error"].get("Message") if isinstance(error, ClientError) else None
    return (message or str(error)).rstrip(".")


def describe_stack(cloudformation: Any, name: str) -> Mapping[str, Any] | None:
    """Return the stack with this name or ARN, or None if it does not exist."""
    try:
        found: Mapping[str, Any] = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return found
