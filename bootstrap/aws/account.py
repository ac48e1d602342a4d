"""AWS account of the user: sessions with the credentials of the environment, and the time at which the credentials
expire."""

import os
from datetime import UTC, datetime, timedelta

import boto3
from botocore.config import Config
from botocore.credentials import EnvProvider
from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.sweep import account

from common.aws_session import core_session


def connect(region: str | None = None, config: Config = account.SHORT_TIMEOUTS) -> boto3.Session:
    """Return a session with short timeouts, so that calls fail soon without a network.

    `region` defaults to the region of the AWS configuration.
    """
    core = core_session()
    core.set_default_client_config(config)
    return boto3.Session(botocore_session=core, region_name=region)


def credentials_end(session: boto3.Session) -> datetime | None:
    """Return the time at which the session's credentials expire, or None if it is unknown.

    The time is only known for credentials from environment variables. botocore renews other credentials, such as the
    credentials of a role.
    """
    credentials = session.get_credentials()
    if credentials is None or credentials.method != EnvProvider.METHOD:
        return None
    try:
        end = datetime.fromisoformat(os.environ.get(EnvProvider.EXPIRY_TIME, ""))
    except ValueError:
        return None
    return end if end.tzinfo else end.replace(tzinfo=UTC)


def credentials_warning(session: boto3.Session, seconds: float, what: str, then: str) -> str | None:
    """Return a warning if the session's credentials expire within `seconds`, the expected duration of some work.
    Otherwise return None.

    `what` names the work. `then` completes the warning: it says what happens when the credentials expire, and what to
    do.
    """
    end, done = credentials_end(session), datetime.now(UTC) + timedelta(seconds=seconds)
    if end is None or end >= done:
        return None
    return (
        f"your AWS credentials expire at {end.astimezone(UTC):%Y-%m-%d %H:%M} UTC, but {what} is expected to last "
        f"until about {done:%Y-%m-%d %H:%M} UTC; {then}"
    )


class Account(account.Account):
    """AWS account of the user. By default it has a new session with the credentials of the environment."""

    def __init__(self, session: boto3.Session | None = None) -> None:
        super().__init__(session or connect())


def name_of(checked: account.Account) -> str:
    """Return the number and the region of an account, for messages."""
    try:
        return f"account {checked.number()} in {checked.region}"
    except (BotoCoreError, ClientError):
        return f"your account in {checked.region}"
