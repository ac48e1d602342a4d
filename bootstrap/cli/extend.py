"""`shoal extend`: a later end of a deployment's life."""

import argparse
import math
from typing import Any

from bootstrap.cli.named import account_of, add_name, dollars, name_of, time
from bootstrap.cli.output import add_json, summary
from bootstrap.errors import ShoalError, UsageError


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "extend",
        help="move a deployment's end to a later time",
        description="Add hours to a deployment's life, after which its guard deletes it. The budget, if the topology "
        "has one, is not moved.",
        epilog="Example: shoal extend demo --hours 6",
    )
    add_name(parser)
    parser.add_argument("--hours", type=float, required=True, metavar="H", help="how many to add")
    parser.add_argument("--dry-run", action="store_true", help="say what it would cost, and change nothing")
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from bootstrap.lifecycle import guard, status

    name, hours = name_of(args), args.hours
    if not math.isfinite(hours) or not 0 < hours <= guard.MOST_HOURS:
        raise UsageError(f"--hours is {hours:g}, but must be above 0 and at most {guard.MOST_HOURS:g}")
    account = account_of(args)
    now = status.look(name, account)
    if now.guard is None:
        raise ShoalError(f"'{name}' ({now.stack['StackStatus']}) has no guard to extend; wait until it is complete")
    if now.stack["StackStatus"].startswith("DELETE"):
        raise ShoalError(
            f"'{name}' is being deleted ({now.stack['StackStatus']}) and cannot be extended; deploy it again when it "
            "is gone"
        )
    before = now.guard.ends
    after = guard.later(now.guard, hours) if args.dry_run else guard.extend(account, name, now.guard, hours)
    most = None if now.most is None else now.most * hours
    budget = now.guard.budget
    rows = [
        ("end before", time(before)),
        ("end now" if not args.dry_run else "end then", time(after)),
        ("these hours cost", f"at most {dollars(most)}, while everything runs"),
        *([("budget", f"{dollars(budget)}, which ends it earlier; it is not moved")] if budget else []),
        *(("was amiss" if not args.dry_run else "amiss", sentence) for sentence in now.guard.broken),
    ]
    content = {
        "deployment": name,
        "before": before.isoformat(),
        "after": after.isoformat(),
        "at_most_dollars": most,
        "budget": budget,
        "extended": not args.dry_run,
        "broken": list(now.guard.broken),
    }
    summary(args, content, rows)
    return 0
