"""AWS account of the user: sessions with the credentials of the environment."""

import boto3
from botocore.config import Config
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
