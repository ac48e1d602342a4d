"""Preflight checks of an account and region for anything that would prevent a deployment, before anything is created.

A user waits for the result, so a missing network must be reported within seconds.
"""

from collections.abc import Callable, Iterator, Sequence

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.preflight import Finding, Level
from infra.topology import Topology
from shoal.aws import loopback
from shoal.aws.account import Account, connect
from shoal.deployments.rules import PreflightContext, account, buckets, keys, network, quotas

Rule = Callable[[PreflightContext], Iterator[str]]

_RULES: Sequence[tuple[Level, Rule, str]] = (
    ("error", account.free_plan, "Whether the account has the Paid plan (old accounts have no plan)"),
    ("error", quotas.quota_too_low, "Whether the vCPU quotas suffice"),
    ("error", quotas.job_quota_too_low, "Whether SageMaker's quota suffices"),
    ("error", network.type_not_in_zone, "Whether a zone offers all instance types"),
    (
        "error",
        keys.key_unusable,
        "Whether Auto Scaling can use the KMS key of volumes (your own key must allow the role "
        f"AWSServiceRoleForAutoScaling {keys.USES})",
    ),
    ("error", buckets.bucket_unusable, "Whether the buckets that the topology names can be used"),
    ("error", network.no_way_out, "Whether nodes in the existing subnet reach S3"),
    ("warning", account.not_prepared, "Whether the account is prepared for Shoal"),
)
"""For each rule, its level, the function, and a description of the check. The description is the beginning of the
message `... could not be checked`."""
_QUICK = Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 3})


def session(region: str) -> boto3.Session:
    """Return a session in which calls fail within seconds if AWS does not answer."""
    return connect(region, _QUICK)


def online(topology: Topology, asking: boto3.Session, *, deployment: str) -> tuple[str, list[Finding]]:
    """Run the rules that query AWS.

    Returns: A text that names the checked account, or says why no account was checked; and the findings, errors first.
    """
    if asking.get_credentials() is None:
        return "not checked, because there are no credentials", []
    context = PreflightContext(topology=topology, deployment=deployment, account=Account(asking))
    try:
        number = context.account.number()
    except (BotoCoreError, ClientError) as error:
        return f"could not be checked ({error})" + (f"; {loopback.START}" if loopback.is_unreachable(error) else ""), []
    findings = [finding for each in _RULES for finding in _run(*each, context)]
    return f"account {number}, {topology.region}", sorted(findings, key=lambda finding: finding.level != "error")


def _run(level: Level, rule: Rule, about: str, context: PreflightContext) -> list[Finding]:
    name, findings = rule.__name__, list[Finding]()
    try:
        for sentence in rule(context):
            findings.append(Finding(level=level, rule=name, sentence=sentence))
    except (BotoCoreError, ClientError) as error:
        findings.append(Finding(level="warning", rule=name, sentence=f"{about} could not be checked: {error}"))
    return findings
