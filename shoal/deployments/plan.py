"""Plan of a deployment: prices of its resources, actions of its guard, and findings of the preflight.

Errors of the offline rules prevent only deployments on AWS, because the emulator also runs retired instance types.
Errors of the online rules prevent all deployments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.display import plural
from infra import caller, catalog, cost, preflight
from infra.preflight import Finding
from infra.topology import Topology, instance_types

if TYPE_CHECKING:
    import boto3


@dataclass(frozen=True, kw_only=True)
class DeploymentPlan:
    """Topology with its cost estimate and the preflight's findings. If `unknown` is not empty, all dollars are lower
    bounds."""

    topology: Topology
    hours: float
    bill: Sequence[cost.Row]
    by_use: Sequence[cost.ByUse]
    offline: Sequence[Finding]
    online: Sequence[Finding]
    account: str
    """Description of the account that the online rules checked, or the reason why no account was checked."""
    refused: Sequence[Finding]
    """Findings for which a deployment is refused."""

    @property
    def hourly(self) -> float:
        """Dollars per hour while everything runs."""
        return sum(row.hourly for row in self.bill)

    @property
    def resting(self) -> float:
        """Dollars per hour while no training runs."""
        return sum(row.hourly for row in self.bill if row.since != "train")

    @property
    def unknown(self) -> list[str]:
        """Items that are charged per hour and have no known price."""
        return cost.unknown(self.topology)

    @property
    def findings(self) -> list[Finding]:
        """Findings of the offline and online rules, errors first."""
        return sorted([*self.offline, *self.online], key=lambda finding: finding.level != "error")


def make_plan(
    topology: Topology,
    *,
    deployment: str,
    hours: float | None = None,
    session: "boto3.Session | None" = None,
    endpoint: str | None = None,
) -> DeploymentPlan:
    """Return the price and the preflight's findings for a topology. Without a session, the online rules are skipped."""
    account, findings = "not checked", list[Finding]()
    if session is not None:
        from shoal.deployments import preflight as online  # imports boto3, which loads slowly

        account, findings = online.online(topology, session, deployment=deployment)
    offline = preflight.offline(topology)
    # The offline rules are about AWS's regions, so they refuse nothing at an endpoint on this machine.
    binding = findings if caller.is_local(endpoint) else [*offline, *findings]
    return DeploymentPlan(
        topology=topology,
        hours=topology.guard.max_hours if hours is None else hours,
        bill=cost.rows(topology),
        by_use=cost.by_use(topology),
        offline=offline,
        online=findings,
        account=account,
        refused=[finding for finding in binding if finding.level == "error"],
    )


def guard_sentences(topology: Topology, *, deployment: str) -> list[str]:
    guard, standing, unknown = topology.guard, cost.hourly_fixed(topology), cost.unknown(topology)
    working = [
        *(["the EMR cluster"] if topology.preprocessing else []),
        *(["the nodes that train and read" if topology.readers else "the GPU nodes"] if topology.training else []),
    ]
    rest = f"${standing:.2f} per hour remains" if standing else "nothing that is billed by the hour remains"
    if any(row.unit_price is None for row in cost.rows(topology) if row.since == "always"):
        rest = "the remaining resources are billed by the hour"
    kept = ", and the data bucket with it, unless the bucket has runs that were not fetched (a kept bucket costs money)"
    if topology.data.keep is False:
        kept = ", and the data bucket with it; fetch the models first (`shoal fetch`)"
    elif topology.data.keep or topology.data.bucket:
        kept = "; the data bucket is kept, and you pay for its content"
    most = cost.hourly(topology)
    hours = f"These hours cost at most ${guard.max_hours * most:.2f} without items charged by use"
    if unknown:
        download = f"`make prices REGION={topology.region}` downloads them with AWS credentials"
        hours = f"The cost of these hours is unknown, because prices are missing ({download})"
    sentences = [
        *(
            [f"It terminates {' and '.join(working)} after {guard.idle_minutes} minutes without work; {rest}."]
            if working
            else []
        ),
        *(
            ["It counts the cost of training jobs, and stops them with a checkpoint before it deletes anything."]
            if topology.managed
            else []
        ),
        f"It deletes the stack {plural(guard.max_hours, 'hour')} after the first deployment{kept}. {hours}; "
        f"`shoal extend {deployment} --hours H` adds more.",
    ]
    if guard.budget is not None and not unknown:
        after = guard.budget / most
        counted = "; ".join(use.item for use in cost.by_use(topology) if use.unit == "GiB")
        sentences.append(
            f"It also deletes the stack when ${guard.budget:.2f} are spent, which takes {after:.1f} h with everything "
            f"running.{f' The budget includes these items charged by use: {counted}.' if counted else ''}"
        )
    if guard.mail:
        sentences.append(
            f"It warns {guard.mail} before it deletes the stack; confirm the email that AWS sends there first."
        )
    else:
        sentences.append("It warns nobody, because the topology has no email address (guard, mail).")
    return sentences


def gpus(topology: Topology) -> int:
    """Return the number of training GPUs when all node groups are scaled up."""
    return sum(group.count * group.gpus for group in topology.trainers)


def retired(topology: Topology) -> list[str]:
    """Return the topology's instance types that AWS no longer starts."""
    return [name for name in instance_types(topology) if catalog.find(name).retired]
