"""`shoal status`: what a deployment is doing, what it costs now, and when it ends."""

import argparse
from typing import TYPE_CHECKING, Any

from bootstrap.cli.named import account_of, add_name, dollars, name_of, spent, time
from bootstrap.cli.output import add_json, summary
from corpus.counted import plural

if TYPE_CHECKING:
    from bootstrap.lifecycle.status import GroupStatus, Status


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "status",
        help="say what a deployment is doing",
        description="Show a deployment's stack, cluster and nodes, what it costs an hour now, what was spent, and "
        "when its guard ends it.",
        epilog="Example: shoal status demo --json",
    )
    add_name(parser)
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from bootstrap.lifecycle import status

    name, account = name_of(args), account_of(args)
    now = status.look(name, account)
    summary(args, _content(now), _rows(now, account.region))
    return 0


def _content(now: "Status") -> dict[str, Any]:
    guard = now.guard
    return {
        "deployment": now.name,
        "stack": now.stack["StackName"],
        "state": now.stack["StackStatus"],
        "owner": now.owner,
        "topology": now.topology,
        "outputs": now.outputs,
        "cluster": vars(now.cluster) if now.cluster else None,
        "groups": [vars(group) for group in now.groups],
        "dollars_an_hour": now.rate,
        "dollars_an_hour_at_most": now.most,
        "created": now.stack["CreationTime"].isoformat(),
        "ends": guard.ends.isoformat() if guard else None,
        "spent": guard.spent if guard else None,
        "as_of": guard.as_of.isoformat() if guard and guard.as_of else None,
        "budget": guard.budget if guard else None,
        "broken": list(guard.broken) if guard else [],
    }


def _rows(now: "Status", region: str) -> list[tuple[str, str]]:
    guard, cluster = now.guard, now.cluster
    reason = now.stack.get("StackStatusReason")
    rows = [
        ("deployment", f"{now.name} ({now.stack['StackName']}, {region})"),
        ("state", now.stack["StackStatus"] + (f": {reason}" if reason else "")),
        ("owner, topology", f"{now.owner}, {now.topology}"),
    ]
    if cluster:
        nodes = f", {plural(len(cluster.nodes), 'node')}" if cluster.nodes else ""
        rows.append(("cluster", f"{cluster.identifier}: {cluster.state}{nodes} {cluster.reason}".strip()))
    rows += [(f"nodes {group.name}", _described(group)) for group in now.groups]
    rows += [(name, value) for name, value in sorted(now.outputs.items()) if name.endswith(("Bucket", "ShareId"))]
    rows.append(
        ("costs now", f"{dollars(now.rate, ' an hour')}; {dollars(now.most, ' an hour')} while everything runs")
    )
    if guard:
        rows.append(("spent", spent(guard)))
        rows.append(("ends by itself", f"{time(guard.ends)}; later by: shoal extend {now.name} --hours H"))
        rows += [("amiss", sentence) for sentence in guard.broken]
    else:
        rows.append(("ends by itself", f"no: it has no guard; end it by: shoal destroy {now.name}"))
    return rows


def _described(group: "GroupStatus") -> str:
    ready = "how many are ready cannot be told (see shoal logs)" if group.ready is None else f"{group.ready} ready"
    return f"{group.instance_type}: {group.desired} of {group.size} asked for, {group.running} running, {ready}"
