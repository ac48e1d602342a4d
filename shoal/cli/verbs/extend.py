"""`shoal extend`: adds hours to a deployment's life."""

import math
from typing import Any

import click

from common.errors import ShoalError
from shoal.cli.command import command, option
from shoal.cli.figures import dollars
from shoal.cli.output import Result
from shoal.cli.target import Target, target_options


@command(
    help="Add hours to a deployment's life. At the end of its life, the guard deletes the deployment. The "
    "budget is not changed, and must cover the added hours with everything running.",
    epilog="Example: shoal extend demo --hours 6",
)
@target_options
@option(
    "--hours",
    type=click.FloatRange(0, 720, min_open=True),
    required=True,
    metavar="H",
    help="hours to add, at most 720 at once",
)
def run(target: Target, hours: float) -> Result:
    from shoal.aws import guard
    from shoal.deployments import status

    name = target.name
    account = target.account
    now = status.read_status(name, account)
    if now.stack["StackStatus"].startswith("DELETE"):
        raise ShoalError(
            f"CloudFormation is deleting '{name}' ({now.stack['StackStatus']}); when it is gone, deploy it again"
        )
    if now.guard is None:
        raise ShoalError(
            f"'{name}' ({now.stack['StackStatus']}) has no guard that could extend its life; wait until the "
            f"stack is complete"
        )
    most, budget = None if now.most is None else now.most * hours, now.guard.budget
    left = math.inf if budget is None else max(0.0, budget - (now.guard.spent or 0.0))
    if most is not None and most > left:
        raise ShoalError(
            f"{hours:g} more hours of '{name}' could cost {dollars(most)}, but only {dollars(left)} of its "
            f"budget of {dollars(budget)} is left; add fewer hours, or raise `budget` in the topology's `guard` "
            f"and deploy it again (this also replaces an EMR cluster that has terminated)"
        )
    before = now.guard.ends
    after = guard.extend(account, name, now.guard, hours)
    content: dict[str, Any] = {
        "deployment": name,
        "before": before,
        "after": after,
        "at_most_dollars": most,
        "budget": budget,
    }
    rows = {
        "end before": "{before:utc_time}",
        "end now": "{after:utc_time}",
        "these hours cost": "at most {at_most_dollars:dollars}, while everything runs",
        **({"budget": "{budget:dollars}, unchanged; when it is spent, the deployment is deleted"} if budget else {}),
    }
    return Result(content, [rows])
