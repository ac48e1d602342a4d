"""Checks with AWS, before anything is created, what would stop a deployment in an account and region.

Somebody waits for the answers, so a missing network must be reported within seconds.
"""

from collections.abc import Sequence

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import loopback
from bootstrap.aws.account import Account, connect
from bootstrap.lifecycle.rules import OnlineRule, PreflightContext
from bootstrap.lifecycle.rules.buckets import BucketUnusable
from bootstrap.lifecycle.rules.capacity import FirstZoneLacksType, MayNotStart, TooFewZones, TypeNotOffered
from bootstrap.lifecycle.rules.names import NameTaken, NoSuchRelease, NotPrepared, OldAccount
from bootstrap.lifecycle.rules.network import NoSuchSubnet, NotForEmr, NoWayOut
from bootstrap.lifecycle.rules.quotas import QuotaKeepsFromScaling, QuotaTooLow
from infra.rules import Finding
from infra.topology import Topology

_RULES: Sequence[OnlineRule] = (
    NameTaken(),
    TooFewZones(),
    TypeNotOffered(),
    QuotaTooLow(),
    QuotaKeepsFromScaling(),
    MayNotStart(),
    NoSuchRelease(),
    BucketUnusable(),
    NoSuchSubnet(),
    NoWayOut(),
    NotForEmr(),
    FirstZoneLacksType(),
    OldAccount(),
    NotPrepared(),
)
_QUICK = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 3})


def session(region: str) -> boto3.Session:
    """A session whose calls fail within seconds when AWS does not answer."""
    return connect(region, _QUICK)


def online(topology: Topology, asking: boto3.Session, *, deployment: str, owner: str) -> tuple[str, list[Finding]]:
    """Ask AWS.

    Returns:
        The account that was checked, or why none was, in words; and the findings, errors first.
    """
    if asking.get_credentials() is None:
        return "not asked, because there are no credentials", []
    context = PreflightContext(topology=topology, deployment=deployment, owner=owner, account=Account(asking))
    try:
        number = context.account.number()
    except (BotoCoreError, ClientError) as error:
        return f"could not be asked ({error})" + (f"; {loopback.START}" if loopback.is_gone(error) else ""), []
    found = [finding for rule in _RULES for finding in _run(rule, context)]
    return f"account {number}, {topology.region}", sorted(found, key=lambda finding: finding.level != "error")


def _run(rule: OnlineRule, context: PreflightContext) -> list[Finding]:
    name = type(rule).__name__
    try:
        return [Finding(level=rule.level, rule=name, sentence=sentence) for sentence in rule.check(context)]
    except (BotoCoreError, ClientError) as error:
        return [Finding(level="warning", rule=name, sentence=f"{rule.about} could not be checked: {error}")]
