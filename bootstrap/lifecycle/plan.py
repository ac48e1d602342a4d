"""Plans a deployment: its price by part, what its guard will do, and the findings of the preflight.

The offline findings stop a deployment on AWS only, because the emulator also runs retired types. The online findings
stop both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.display import plural
from infra import caller, catalog, cost, preflight
from infra.rules import Finding
from infra.topology import Topology, instance_types

if TYPE_CHECKING:
    import boto3


@dataclass(frozen=True, kw_only=True)
class DeploymentPlan:
    """A topology with its bill and its findings. Where prices are `unknown`, its dollars are the least."""

    topology: Topology
    hours: float
    bill: Sequence[cost.Row]
    by_use: Sequence[cost.ByUse]
    offline: Sequence[Finding]
    online: Sequence[Finding]
    account: str
    """The account that was checked for the online findings, or why none was, in words."""
    emulated: bool

    @property
    def hourly(self) -> float:
        """Dollars an hour while everything works."""
        return sum(row.hourly for row in self.bill)

    @property
    def resting(self) -> float:
        """Dollars an hour between the deployment and a training."""
        return sum(row.hourly for row in self.bill if row.since != "train")

    @property
    def unknown(self) -> list[str]:
        """What is paid for by the hour at a price that is not known."""
        return cost.unknown(self.topology)

    @property
    def findings(self) -> list[Finding]:
        """All of them, errors first."""
        return sorted([*self.offline, *self.online], key=lambda finding: finding.level != "error")

    @property
    def refused(self) -> list[Finding]:
        counted = self.online if self.emulated else self.findings
        return [finding for finding in counted if finding.level == "error"]


def make_plan(
    topology: Topology,
    *,
    deployment: str,
    owner: str,
    hours: float | None = None,
    session: "boto3.Session | None" = None,
    endpoint: str | None = None,
) -> DeploymentPlan:
    """Price and check a topology; without a session AWS is not asked."""
    account, found = "not asked", list[Finding]()
    if session is not None:
        from bootstrap.lifecycle import preflight as online  # this import loads boto3

        account, found = online.online(topology, session, deployment=deployment, owner=owner)
    return DeploymentPlan(
        topology=topology,
        hours=topology.guard.max_hours if hours is None else hours,
        bill=cost.rows(topology),
        by_use=cost.by_use(topology),
        offline=preflight.offline(topology, hours=hours),
        online=found,
        account=account,
        emulated=caller.emulated(endpoint),
    )


def guard_sentences(topology: Topology, *, deployment: str) -> list[str]:
    guard, standing, unknown = topology.guard, cost.hourly_fixed(topology), cost.unknown(topology)
    working = [
        *(["the EMR cluster"] if topology.preprocessing else []),
        *(["the nodes that train and read" if topology.readers else "the GPU nodes"] if topology.training else []),
    ]
    rest = f"${standing:.2f} an hour is left" if standing else "nothing that costs by the hour is left"
    if any(row.unit_price is None for row in cost.rows(topology) if row.since == "always"):
        rest = "what is left still costs by the hour"
    kept = (
        ", and the data bucket with it, unless it holds runs that were not fetched: then it stays, and you pay for it"
    )
    if topology.data.keep is False:
        kept = ", and the data bucket with it; fetch the models before (`shoal fetch`)"
    elif topology.data.keep or topology.data.bucket:
        kept = "; the data bucket stays, and you pay for what is in it"
    most = cost.hourly(topology)
    hours = f"These hours cost at most ${guard.max_hours * most:.2f}, besides what is paid by use"
    if unknown:
        hours = "What these hours cost is not known, because prices are missing"
    sentences = [
        *(
            [f"It ends {' and '.join(working)} after {guard.idle_minutes} minutes without work; {rest}."]
            if working
            else []
        ),
        *(
            ["It counts training jobs, and before it deletes anything they stop with a checkpoint."]
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
            f"It also deletes the stack when ${guard.budget:.2f} are spent: after {after:.1f} h with everything at "
            f"work.{f' Of what is paid by use it counts: {counted}.' if counted else ''}"
        )
    if guard.mail:
        sentences.append(
            f"It warns {guard.mail} before it deletes the stack; AWS first sends a mail there, which must be confirmed."
        )
    else:
        sentences.append("It warns nobody, because the topology has no mail address (guard, mail).")
    return sentences


def gpus(topology: Topology) -> int:
    """The number of GPUs that train when all groups are scaled up."""
    return sum(group.count * group.gpus for group in topology.trainers)


def retired(topology: Topology) -> list[str]:
    """The topology's instance types that AWS does not start any more."""
    return [name for name in instance_types(topology) if catalog.find(name).retired]
