"""`shoal sweep`: what of any stack, tag or name prefix is left in an account, and what that costs a month."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shoal_guard.errors import SweepError

from bootstrap.cli.command import command, option
from bootstrap.cli.figures import dollars
from bootstrap.cli.output import Part, Result, Rows, Table, confirm, print_parts
from bootstrap.cli.target import connect_account
from bootstrap.progress import Bars
from common.display import plural
from common.errors import UsageError

if TYPE_CHECKING:
    from shoal_guard.sweep.monthly import Monthly
    from shoal_guard.sweep.sweeping import FoundResource

    from bootstrap.removal.ownership import StackClaim

_LEFT, _REFUSED = 1, 1
_WHOSE = "Whose"


@command(
    help="List what is left of any CloudFormation stack, tag or name prefix in the account and region, service by "
    "service, with what it costs a month. It asks the services' own lists, AWS's tagging service, and CloudFormation's "
    "record of deleted stacks; it needs no stack of Shoal, and changes nothing without --delete. The exit status is 1 "
    "if anything is left that costs money, or if a service does not tell.",
    epilog="Example: shoal sweep --stack WebShop, then shoal sweep --stack WebShop --delete",
)
@option("--stack", metavar="NAME", default="", group=_WHOSE, help="what a stack of exactly this name has, or has left")
@option(
    "--tag", metavar="KEY=VALUE", default="", group=_WHOSE, help="what has this tag; KEY alone: with whatever value"
)
@option(
    "--prefix",
    metavar="PREFIX",
    default="",
    group=_WHOSE,
    help="what has a name, or is of a stack whose name, begins with this",
)
@option("--region", metavar="REGION", help="the region (default: that of your AWS configuration, or else us-east-1)")
@option("--delete", is_flag=True, help="show the list, ask, and delete all of it, with the data in it")
@option("--yes", is_flag=True, help="with --delete: do not ask")
def run(stack: str, tag: str, prefix: str, region: str | None, delete: bool, yes: bool) -> Result:
    if sum(map(bool, (stack, tag, prefix))) != 1:
        raise UsageError("name what to look for: one of --stack NAME, --tag KEY=VALUE and --prefix PREFIX")
    if yes and not delete:
        raise UsageError("--yes goes with --delete")
    if delete and not (yes or sys.stdin.isatty()):
        raise UsageError("there is no terminal to ask on; look without --delete, then delete with --delete --yes")
    from shoal_guard.sweep.kinds import KINDS
    from shoal_guard.sweep.monthly import price_of
    from shoal_guard.sweep.sweeping import delete_found, find_owned

    from bootstrap.removal.ownership import StackClaim

    account = connect_account(region)
    try:
        claim = StackClaim(account, stack=stack, tag=tag, prefix=prefix)
    except ValueError as error:
        raise UsageError(str(error)) from None
    account.number()  # without credentials every service would be told not to answer
    with Bars(unit="kind") as bars:
        bars.stage("ask the services", len(KINDS))
        things = find_owned(claim, KINDS, progress=lambda _kind: bars.add(1))
        prices = {thing.key: price_of(account, thing) for thing in things}
    content = {"of": claim.text, "region": account.region, "stacks": claim.living}
    if not things:
        return Result({**content, "things": []}, [f"nothing of {claim.text} is left in {account.region}"])
    listed = {**content, **_listed(things, prices)}
    parts: list[Part] = [_table(things, prices), _sums(claim, things, prices)]
    if not delete:
        return Result(listed, parts, _status(things))
    print_parts(parts, {}, sys.stderr)
    try:
        claim.check_deletable()
    except SweepError as error:
        raise UsageError(str(error)) from None
    going = sum(thing.is_pending for thing in things)
    if not going:
        nothing = "there is nothing that can be deleted here"
        return Result(listed, [nothing], _status(things))
    if not yes and not confirm(f"Delete {plural(going, 'resource')} in {account.region}, with the data in them?"):
        return Result(listed, ["nothing was deleted"], _REFUSED)
    with Bars(unit="resource") as bars:
        bars.stage("delete", going)
        done = delete_found(claim, things, progress=lambda gone, _found: bars.at(gone))
    return Result({**content, **_listed(done, prices)}, [_table(done, prices), _result(done, prices)], _status(done))


def _status(things: "Sequence[FoundResource]") -> int:
    from shoal_guard.sweep.sweeping import UNVERIFIED

    return _LEFT if any(thing.costs or thing.outcome == UNVERIFIED for thing in things) else 0


def _listed(things: "Sequence[FoundResource]", prices: "Mapping[tuple[str, str], Monthly]") -> dict[str, Any]:
    rows = [
        {
            "kind": each.kind,
            "id": each.identifier,
            "stack": each.stack,
            "billed": each.billed,
            "outcome": each.outcome,
            "why": each.why,
            "dollars_a_month": prices[each.key].dollars,
            "bound": prices[each.key].bound,
        }
        for each in things
    ]
    return {"things": rows, "dollars_a_month": _sum(things, prices)}


def _table(things: "Sequence[FoundResource]", prices: "Mapping[tuple[str, str], Monthly]") -> Table:
    entries = _listed(things, prices)["things"]
    return Table([{**entry, "of": prices[each.key].of} for entry, each in zip(entries, things, strict=True)], _THINGS)


def _price(thing: Mapping[str, Any]) -> str:
    if thing["dollars_a_month"] is None:
        return "unknown"
    free = thing["dollars_a_month"] == 0.0 and not thing["of"]
    return "" if free else f"{thing['bound']} {dollars(thing['dollars_a_month'])}".strip()


_THINGS: Rows = {
    "kind": "{kind}",
    "id": "{id}",
    "stack": "{stack}",
    "a month": _price,
    "of": "{of}",
    "outcome": "{outcome}",
    "why": "{why}",
}


def _sum(things: "Sequence[FoundResource]", prices: "Mapping[tuple[str, str], Monthly]") -> float:
    return sum(prices[each.key].dollars or 0.0 for each in things if each.costs)


def _sums(claim: "StackClaim", things: "Sequence[FoundResource]", prices: "Mapping[tuple[str, str], Monthly]") -> str:
    from shoal_guard.sweep.sweeping import UNVERIFIED

    unknown = sum(prices[each.key].dollars is None for each in things if each.costs)
    unseen = sum(each.outcome == UNVERIFIED for each in things)
    parts = [f"{claim.text} in {claim.account.region}: {plural(len(things), 'resource')}"]
    parts.append(f"known to cost {dollars(_sum(things, prices), ' a month')}")
    parts += [f"{unknown} of unknown price"] if unknown else []
    parts += [f"of {unseen} it cannot be told"] if unseen else []
    stacks = f"\nstill there: the stack {', the stack '.join(claim.living)}" if claim.living else ""
    return ", ".join(parts) + stacks


def _result(done: "Sequence[FoundResource]", prices: "Mapping[tuple[str, str], Monthly]") -> str:
    from shoal_guard.sweep.sweeping import DELETED, UNVERIFIED

    gone = sum(each.outcome == DELETED for each in done)
    unseen = sum(each.outcome == UNVERIFIED for each in done)
    left = [each for each in done if each.costs]
    said = f"{plural(gone, 'resource')} deleted"
    if left:
        said += (
            f"; {plural(len(left), 'resource')} that cost money left ({dollars(_sum(left, prices), ' a month')} known)"
        )
    if unseen:
        said += f"; of {unseen} it cannot be told whether they are left, and whose they are"
    return said if left or unseen else f"{said}, and nothing that costs money is left"
