"""AWS account of the user in one region: its boto3 clients, the items of list operations, and their tags.

Reuse these clients, because creating a client takes longer than most calls. Keep the short timeouts, because with
botocore's defaults a call without a network fails only after minutes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, CredentialRetrievalError

from common.aws_session import core_session

ResourceRecord = Mapping[str, Any]
"""A resource as a service's list operation returns it."""
_SHORT_TIMEOUTS = Config(connect_timeout=5, read_timeout=20)
_AT_ONCE = 8
_Answer = TypeVar("_Answer")


def connect(region: str | None = None, config: Config = _SHORT_TIMEOUTS) -> boto3.Session:
    """Return a session with the credentials of the environment and short timeouts.

    `region` defaults to the region of the AWS configuration.
    """
    core = core_session()
    core.set_default_client_config(config)
    return boto3.Session(botocore_session=core, region_name=region)


class Account:
    """Cached boto3 clients of an account and region. By default they belong to a new session of `connect`."""

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


def name_of(checked: Account) -> str:
    """Return the number and the region of an account, for messages."""
    try:
        return f"account {checked.number()} in {checked.region}"
    except (BotoCoreError, ClientError):
        return f"your account in {checked.region}"


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


def ask_other_regions(account: Account, ask: Callable[[Any], _Answer]) -> tuple[dict[str, _Answer], str]:
    """Call `ask` with a CloudFormation client for each other region of the account. Return the answers by region.

    Also return, as text, the regions that did not answer, with the first reason; empty if all regions answered.
    """
    try:
        found = account.client("ec2").describe_regions()["Regions"]
    except (BotoCoreError, ClientError) as error:
        return {}, f"all other regions ({reason_of(error)})"
    regions = sorted({str(each["RegionName"]) for each in found} - {account.region})
    clients = [account.client("cloudformation", region) for region in regions]

    def answer(client: Any) -> _Answer | BotoCoreError | ClientError:
        try:
            return ask(client)
        except (BotoCoreError, ClientError) as error:
            return error

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = dict(zip(regions, pool.map(answer, clients), strict=True))
    failed = {region: each for region, each in answers.items() if isinstance(each, BotoCoreError | ClientError)}
    unchecked = f"{', '.join(failed)} ({reason_of(next(iter(failed.values())))})" if failed else ""
    return {
        region: each for region, each in answers.items() if not isinstance(each, BotoCoreError | ClientError)
    }, unchecked
