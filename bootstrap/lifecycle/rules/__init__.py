"""The rules of the preflight that ask AWS: a function for each obstacle to a deployment.

Do not catch errors of AWS in a rule: a service that refuses or does not answer is no reason to stop a deployment. The
caller reports that this could not be checked.
"""

from dataclasses import dataclass

from bootstrap.aws.account import Account
from infra.topology import Topology


@dataclass(frozen=True, kw_only=True)
class PreflightContext:
    """What to deploy, under which name, for whom, and where."""

    topology: Topology
    deployment: str
    owner: str
    account: Account
