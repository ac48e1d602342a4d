"""The user's AWS account, by the credentials of the environment as they are, and when these end."""

import os
from datetime import UTC, datetime, timedelta

import boto3
from botocore.config import Config
from botocore.credentials import EnvProvider
from shoal_guard.sweep import account

from common.aws_session import core_session


def connect(region: str | None = None, config: Config = account.SHORT_TIMEOUTS) -> boto3.Session:
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


class Account(account.Account):
    """An account of Shoal's user."""

    def __init__(self, session: boto3.Session | None = None) -> None:
        super().__init__(session or connect())
