"""Rules of the online preflight: a function for each obstacle to a deployment that only AWS knows.

Do not catch errors of AWS in a rule. The caller reports that it could not check the rule, which does not stop a
deployment.
"""

from dataclasses import dataclass

from bootstrap.aws.account import Account
from infra.topology import Topology


@dataclass(frozen=True, kw_only=True)
class PreflightContext:
    """Planned deployment: topology, name, owner and account."""

    topology: Topology
    deployment: str
    owner: str
    account: Account
