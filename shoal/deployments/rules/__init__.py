"""Rules of the online preflight. Each rule is a function that asks AWS about one kind of problem that would prevent a
deployment, and yields one message for each.

Do not catch errors of AWS in a rule. The caller reports as a warning that the rule could not be checked. A warning does
not stop a deployment.
"""

from dataclasses import dataclass

from infra.topology import Topology
from shoal.aws.account import Account


@dataclass(frozen=True, kw_only=True)
class PreflightContext:
    """Planned deployment, as the rules see it: its topology, name and account."""

    topology: Topology
    deployment: str
    account: Account
