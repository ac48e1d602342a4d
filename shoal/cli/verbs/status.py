"""`shoal status`: shows what a deployment does, what it costs now, and when it ends."""

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from common import names
from common.display import plural
from common.errors import ShoalError
from shoal.cli.command import command
from shoal.cli.figures import deletion_rows, deletion_text, dollars, duration, kept_content, spent, utc_time
from shoal.cli.output import Result, Table, with_unanswered
from shoal.cli.target import Target, target_options

if TYPE_CHECKING:
    from bootstrap.node.node_documents import NodeStatus
    from shoal.aws.account import Account
    from shoal.deployments.deletion import Deletion
    from shoal.deployments.status import GroupStatus, Status
    from shoal.runs.outlook import Outlook

_ALL = Table(
    "deployments",
    {
        "deployment": "{deployment}",
        "region": "{region}",
        "state": lambda each: f"unknown: {each['error']}" if each["error"] else each["state"],
        "owner": "{owner}",
        "topology": "{topology}",
        "an hour": "{dollars_an_hour:dollars}",
        "ends by itself": "{ends:utc_time}",
    },
)
_NODES = {"train": "nodes", "read": "readers"}


@command(
    help="Show a deployment's stack, cluster, nodes, hourly cost, spent dollars, and end of life. For each "
    "active training run, show the completed share of its steps, its expected end, and the cost of its nodes so "
    "far and in total, "
    "as upper bounds. Without a name, list all deployments of the account in all regions, or in --region.",
    epilog="Example: shoal status, then: watch -n 10 shoal status demo",
)
@target_options
def run(target: Target) -> Result:
    if not target.typed:
        return _all(target)
    from infra import topology
    from shoal.aws import stacks
    from shoal.deployments import deletion, kept, status

    name, account = target.name, target.account
    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(name))
    buckets, unanswered = kept.find_kept(name, account)
    staying, kept_rows = kept_content(buckets, unanswered)
    if stack is None and ((deleted := deletion.last_deletion(account, name)) or kept_rows):
        rows = [*deletion_rows(deleted), ("deployment", f"{name}: no stack in {account.region}"), *kept_rows]
        content = {"deployment": name, "state": None, "deletion": deleted and vars(deleted), "kept": staying}
        return with_unanswered(Result(content, [rows], 0 if kept_rows else 1), account, unanswered)
    now = status.read_status(name, account)
    runs, run_rows = _runs(now, account)
    content = {**_content(now), "runs": runs, "kept": staying}
    result = Result(content, [[*_rows(now, account.region), *run_rows, *kept_rows]])
    unanswered += now.unanswered
    unanswered += [f"the reports of the nodes '{group.name}'" for group in now.groups if group.ready is None]
    unanswered += [f"the runs ({row[1]})" for row in run_rows if runs is None]
    return with_unanswered(result, account, unanswered)


def _all(target: Target) -> Result:
    """Return one row per deployment. If Shoal could not read a deployment, its row shows the error."""
    from botocore.exceptions import BotoCoreError, ClientError

    from shoal.aws.account import Account, reason_of
    from shoal.aws.deployment import existing_names, list_stacks
    from shoal.cli.target import connect_account
    from shoal.deployments import deletion, status

    account = target.account
    by_region, unchecked = list_stacks(account)
    if target.region:
        by_region, unchecked = {account.region: by_region[account.region]}, ""
    listed, deletions, unanswered = list[dict[str, Any]](), dict[str, "Deletion"](), list[str]()
    for region, found in by_region.items():
        here: Account = account if region == account.region else connect_account(region)
        for name in existing_names(found):
            one: dict[str, Any] = dict.fromkeys(("state", "owner", "topology", "dollars_an_hour", "ends", "deletion"))
            try:
                content = _content(now := status.read_status(name, here))
                one, error = {key: content[key] for key in one}, None
                deletions |= {name: now.deletion} if now.deletion else {}
            except (BotoCoreError, ClientError, ShoalError) as failure:
                error = str(failure)
            listed.append({"deployment": name, "region": region, **one, "error": error})
        try:
            deletions |= deletion.recent_deletions(here, found)
        except (BotoCoreError, ClientError) as failure:
            unanswered.append(f"the recent deletions in {region}: {reason_of(failure)}")
    nowhere = "" if target.region else " or any other region"
    text = _ALL if listed else f"no deployment in {account.region}{nowhere}"
    note = f"note: Shoal could not check these regions: {unchecked}" if unchecked else ""
    unanswered += [f"{each['deployment']} in {each['region']}: {each['error']}" for each in listed if each["error"]]
    content = {
        "deletions": {name: vars(each) for name, each in deletions.items()},
        "deployments": listed,
        "unchecked": unchecked,
    }
    first = "\n".join(f"{name}: {deletion_text(each)}" for name, each in deletions.items())
    result = Result(content, [first, text, note])
    return with_unanswered(result, account, [*unanswered, *filter(None, [unchecked])])


def _runs(now: "Status", account: "Account") -> tuple[list[dict[str, Any]] | None, list[tuple[str, str]]]:
    """Return the requested training runs as JSON content (None if they are unknown) and as rows of text."""
    from botocore.exceptions import ClientError

    from shoal.aws.deployment import Deployment
    from shoal.backends.attaching import overview

    if names.OUTPUT_DATA_BUCKET not in now.outputs or not (now.groups or now.jobs):
        return [], []
    deployment = Deployment(name=now.name, topology=now.topology, session=account.session, outputs=now.outputs)
    try:
        overviews = overview(deployment, {name: each for group in now.groups for name, each in group.statuses.items()})
    except ShoalError as error:
        return None, [("runs", f"unknown: {error}")]
    except ClientError as error:
        return None, [("runs", f"unknown, because AWS answers {error.response.get('Error', {}).get('Code')}")]
    rows: list[tuple[str, str]] = []
    for each in overviews:
        rows.append((f"run {each.run}", ": ".join(filter(None, (each.state, each.error)))))
        for attempt in each.attempts:
            why = f", because {attempt.why}" if attempt.why else ""
            rows.append(
                (f"  attempt {attempt.number}", f"{plural(len(attempt.members), 'node')}, step {attempt.step:,}{why}")
            )
        if each.advice and any(group.desired for group in now.groups):
            rows.append(("  next", each.advice))
        if each.outlook is not None:
            rows.append(("  expected", describe_outlook(each.outlook)))
    return [asdict(each) for each in overviews], rows


def describe_outlook(expected: "Outlook") -> str:
    """Return a sentence with a run's completed share, expected end, and cost."""
    done = "progress unknown" if expected.done is None else f"{expected.done:.1%} done"
    if expected.ends is None or expected.seconds_left is None:
        ends = "end unknown"
    else:
        ends = f"ends at about {utc_time(expected.ends)}, in {duration(expected.seconds_left)}"
    if expected.dollars_at_least is None:
        cost = "cost unknown"
    elif expected.dollars is None:
        cost = f"at least {dollars(expected.dollars_at_least)} so far, without nodes that have terminated"
    else:
        total = "" if expected.dollars_in_all is None else f", about {dollars(expected.dollars_in_all)} in total"
        cost = f"{dollars(expected.dollars)} so far{total}"
    return f"{done}; {ends}; {cost}"


def _content(now: "Status") -> dict[str, Any]:
    guard = now.guard
    return {
        "deployment": now.name,
        "stack": now.stack["StackName"],
        "state": now.stack["StackStatus"],
        "deletion": now.deletion and vars(now.deletion),
        "owner": now.owner,
        "topology": now.topology,
        "outputs": now.outputs,
        "cluster": vars(now.cluster) if now.cluster else None,
        "groups": [asdict(group) for group in now.groups],
        "dollars_an_hour": now.rate,
        "dollars_an_hour_at_most": now.most,
        "created": now.stack["CreationTime"],
        "ends": now.ends,
        "spent": guard.spent if guard else None,
        "as_of": guard.as_of if guard else None,
        "budget": guard.budget if guard else None,
    }


def _rows(now: "Status", region: str) -> list[tuple[str, str]]:
    guard, cluster = now.guard, now.cluster
    reason = now.stack.get("StackStatusReason")
    rows = [
        *deletion_rows(now.deletion),
        ("deployment", f"{now.name} ({now.stack['StackName']}, {region})"),
        ("state", now.stack["StackStatus"] + (f": {reason}" if reason else "")),
        ("owner, topology", f"{now.owner}, {now.topology}"),
    ]
    if cluster:
        nodes = f", {plural(len(cluster.nodes), 'node')}" if cluster.nodes else ""
        rows.append(("cluster", f"{cluster.identifier}: {cluster.state}{nodes} {cluster.reason}".strip()))
    for group in now.groups:
        rows.append((f"{_NODES[group.role]} {group.name}", _described(group)))
        rows += [(instance, describe_status(status)) for instance, status in group.statuses.items()]
    rows += [(name, value) for name, value in sorted(now.outputs.items()) if name.endswith(("Bucket", "ShareId"))]
    rows.append(
        ("costs now", f"{dollars(now.rate, ' per hour')}; {dollars(now.most, ' per hour')} while everything runs")
    )
    if guard:
        rows.append(("spent", spent(guard)))
    if now.deletion or now.stack["StackStatus"].startswith("DELETE_"):
        return rows
    if guard:
        end = f"{utc_time(guard.ends)}; to extend: shoal extend {now.name} --hours H"
    elif now.stack["StackStatus"] == "CREATE_IN_PROGRESS":  # the stack has no outputs yet
        end = "not known until the stack is complete"
    else:
        end = f"none, because it has no guard; to delete it: shoal destroy {now.name}"
    return [*rows, ("end of life", end)]


def describe_status(status: "NodeStatus | str") -> str:
    """Return a node's phase, step and GPU use as text; if its status is unknown, return the reason."""
    if isinstance(status, str):
        return f"unknown: {status}"
    of = "" if status.steps is None else f" of {status.steps:,}"
    step = None if status.step is None else f"step {status.step:,}{of}"
    attempt = f"attempt {status.attempt:,}" if status.attempt else None
    used = None if status.gpu_use is None else f"GPUs {status.gpu_use}% used"
    return ", ".join(filter(None, (status.phase, step, attempt, used, status.trouble, status.error)))


def _described(group: "GroupStatus") -> str:
    ready = "ready nodes unknown (see shoal logs)" if group.ready is None else f"{group.ready} ready"
    types = " or ".join(group.instance_types or []) or "unknown"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(group.nodes).items()))
    running = f"{group.running} running{f' ({kinds})' if kinds and len(group.instance_types or []) != 1 else ''}"
    return f"{types}: desired {group.desired} of at most {group.size}, {running}, {ready}"
