"""`shoal costs`: shows what a deployment has cost: the guard's count, an upper bound, and AWS's bill."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.cli.command import command
from shoal.cli.figures import deletion_rows, dollars, kept_content, spent
from shoal.cli.output import Result, with_unanswered
from shoal.cli.target import Target, target_options

_PAST = timedelta(days=30)


@command(
    help="Show what a deployment has cost: the guard's count (hours times prices, at most five minutes old), "
    "the upper bound if everything had run all the time, and AWS's bill. AWS's bill is one day late, and also "
    "includes deleted deployments. Each request for the bill costs one cent.",
    epilog="Example: shoal costs demo",
)
@target_options
def run(target: Target) -> Result:
    from infra import topology
    from shoal.aws import stacks
    from shoal.aws.deployment import no_such_deployment
    from shoal.deployments import bill, deletion, kept, status

    name, account = target.name, target.account
    now = datetime.now(UTC)
    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(name))
    buckets, unanswered = kept.find_kept(name, account)
    staying, kept_rows = kept_content(buckets, unanswered)
    current = None if stack is None else status.read_status(name, account)
    deleted = current.deletion if current else deletion.last_deletion(account, name)
    if current is None and deleted is None and not kept_rows:
        raise no_such_deployment(name, account)
    created = current.stack["CreationTime"].astimezone(UTC) if current else now - _PAST
    billed = bill.fetch_bill(account, name, created)
    unanswered += [billed.why] * billed.is_denied
    content: dict[str, Any] = {
        "deployment": name,
        "deletion": deleted and vars(deleted),
        "billed": billed.total,
        "services": billed.services,
        "kept": staying,
    }
    parts = sorted(billed.services.items(), key=lambda each: -each[1])
    bills = [
        ("billed by AWS", billed.why or f"{dollars(billed.total)} since {billed.since}, one day late"),
        *((f"  {service}", dollars(amount)) for service, amount in parts if amount >= 0.005),
        *kept_rows,
    ]
    if current is None:
        rows = [*deletion_rows(deleted), ("deployment", f"{name}: no stack in {account.region}"), *bills]
        return with_unanswered(Result(content, [rows]), account, unanswered)
    hours = (now - created) / timedelta(hours=1)
    guard, most = current.guard, current.most
    unanswered += current.unanswered
    counted = guard.spent if guard else None
    content |= {
        "hours": hours,
        "spent": counted,
        "as_of": guard.as_of if guard else None,
        "budget": guard.budget if guard else None,
        "estimate": None
        if most is None
        else max(most * hours, counted or 0.0),  # a larger topology may have run before
        "dollars_an_hour": current.rate,
        "why_not_billed": billed.why,
    }
    rows = [
        *deletion_rows(deleted),
        ("deployment", f"{name}, {hours:,.1f} hours old"),
        ("spent, by the guard", spent(guard) if guard else "not counted: the deployment has no guard"),
        ("costs now", dollars(current.rate, " per hour")),
        ("at most", f"{dollars(content['estimate'])}, if everything had run all the time"),
        *bills,
    ]
    return with_unanswered(Result(content, [rows]), account, unanswered)
