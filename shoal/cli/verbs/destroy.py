"""`shoal destroy`: deletes a deployment. Shows what will be deleted, and then verifies that nothing is left."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from common.display import plural
from common.errors import ShoalError, UsageError
from common.progress import reporter
from infra.policies import TOOLKIT_STACK
from shoal.cli.command import command, option
from shoal.cli.figures import dollars, kept_text, spent
from shoal.cli.output import Part, Result, Table, confirm, say, with_unanswered
from shoal.cli.target import Target, target_options
from shoal.progress import Bars

if TYPE_CHECKING:
    from shoal.aws.account import Account
    from shoal.deployments.destroy_preview import DestroyPreview
    from shoal.deployments.removal.sweep import FoundResource
    from shoal.deployments.removal.teardown import DestroyResult

_LEFT, _REFUSED = 1, 1
_THINGS = Table(
    "things",
    {
        "kind": "{kind}",
        "id": "{id}",
        "costs": lambda thing: "yes" if thing["billed"] else "",
        "outcome": "{outcome}",
        "why": "{why}",
    },
)


@command(
    help="Delete a deployment. The command shows what will be deleted and what will be kept, asks for confirmation, "
    "and deletes the stack. Then it queries every AWS service for resources of the deployment, and deletes what is "
    "left. The command works in every state of the stack: half created, half deleted, or deleted by hand. The exit "
    "status is 1 if something that costs money is left, or if AWS does not answer, also with --dry-run. Data that the "
    "topology keeps, and a data bucket with runs that were not fetched, do not count as left.",
    epilog="Example: shoal destroy demo --dry-run, then shoal destroy demo",
)
@target_options
@option("--yes", is_flag=True, help="delete without asking for confirmation, unless a training run is active")
@option("--stop-runs", is_flag=True, help="first stop active training runs with a checkpoint")
@option("--dry-run", is_flag=True, help="show what would be deleted and what would be kept; delete nothing")
@option("--delete-runs", is_flag=True, help="also delete runs that were not fetched, and their data bucket")
def run(
    target: Target,
    yes: bool,
    stop_runs: bool,
    dry_run: bool,
    delete_runs: bool,
) -> Result:
    name, account = target.name, target.account
    if not (yes or dry_run or sys.stdin.isatty()):
        raise UsageError("there is no terminal to ask for confirmation; check with --dry-run, then destroy with --yes")
    from shoal.aws.deployment import no_such_deployment
    from shoal.deployments.removal import teardown
    from shoal.deployments.removal.sweep import UNVERIFIED

    before = _look(name, account)
    if stop_runs and before.trains and not dry_run and _stop_runs(name, account, before.trains, ask=not yes):
        before = _look(name, account)
    if before.unknown:
        raise no_such_deployment(name, account)
    for line in _lines(name, account, before, delete_runs):
        say(line)
    content = {**_content(name, before), "things": _listed(before.things)}
    empty = before.bucket if delete_runs and not before.loses_runs else None
    if before.is_empty and not (before.unfetched and delete_runs):
        nothing = f"nothing of '{name}' is left to destroy{_but_kept(len(before.kept))}"
        return Result({**content, "destroyed": True}, [nothing])
    if dry_run:
        unknown = [f"{thing.kind}: {thing.why}" for thing in before.things if thing.outcome == UNVERIFIED]
        return with_unanswered(Result(content, [_THINGS]), account, [*unknown, *before.notes])
    if yes and before.trains != [] and not stop_runs:
        trains = f"{', '.join(before.trains)} is running" if before.trains else "a training run might be active"
        raise ShoalError(f"nothing was destroyed, because {trains}; add --stop-runs, or first run: shoal stop {name}")
    if not yes and not confirm("Destroy it?"):
        return Result({**content, "destroyed": False}, ["nothing was destroyed"], _REFUSED)
    try:
        with Bars(unit="resource"):
            done = teardown.destroy(name, account, empty=empty)
    except KeyboardInterrupt:
        say(
            "interrupted; AWS finishes the deletions that have started",
            f"to continue: shoal destroy {name} --yes{' --stop-runs' if before.trains != [] else ''}"
            f"{' --delete-runs' if delete_runs else ''}",
            f"to see what is left: shoal destroy {name} --dry-run",
        )
        raise
    became = {"destroyed": done.proven, "stack": done.stack, "things": _listed(done.things)}
    parts: list[Part] = ["resources found outside the stack:", _THINGS] if done.things else []
    return Result({**content, **became}, [*parts, _result(name, done)], 0 if done.proven else _LEFT)


def _look(name: str, account: "Account") -> "DestroyPreview":
    from shoal.deployments import destroy_preview

    with Bars():
        reporter().stage("search the account")
        return destroy_preview.preview(name, account)


def _lines(name: str, account: "Account", before: "DestroyPreview", delete_runs: bool) -> list[str]:
    lines = [f"deployment {name} in {account.region}: {before.stack or 'no stack'}"]
    goes = Counter(thing.kind for thing in before.deleted)
    if goes:
        lines.append("will be deleted: " + ", ".join(plural(number, kind) for kind, number in sorted(goes.items())))
    if before.running:
        lines.append(f"running now: {', '.join(before.running)}")
    if before.trains:
        lines.append(f"training runs that would be aborted: {', '.join(before.trains)}")
    if before.rate is not None:
        lines.append(f"costs now: {dollars(before.rate, ' per hour')}")
    if before.guard:
        lines.append(f"spent: {spent(before.guard)}")
    if before.loses_runs or (before.unfetched and delete_runs):
        lines.append(
            f"runs that would be lost: {', '.join(before.unfetched)} (s3://{before.bucket}/runs/); to "
            f"keep them, first run: shoal fetch {name} --output DIR"
        )
    lines += [f"kept: {kept_text(kept)}" for kept in before.kept if not (delete_runs and kept.bucket == before.bucket)]
    lines += [f"note: {note}" for note in before.notes]
    return [*lines, f"kept: {TOOLKIT_STACK}, the CDK's stack, which all deployments in the region share"]


def _stop_runs(name: str, account: "Account", runs: Sequence[str], *, ask: bool) -> bool:
    """Stop the training runs, after a last checkpoint; return False if the user declines.

    If a training run does not stop, print the reason; the deletion of the stack then terminates it.
    """
    if ask and not confirm(f"First stop {', '.join(runs)} with a checkpoint?"):
        return False
    from botocore.exceptions import BotoCoreError, ClientError

    from shoal.aws.deployment import find_deployment
    from shoal.deployments.runs import find_run

    for each in runs:
        try:
            with Bars():
                outcome, error = find_run(find_deployment(name, account), each).stop()
            say(f"{each}: {outcome}{f', {error}' if error else ''}")
        except (BotoCoreError, ClientError, ShoalError) as failure:
            say(f"{each} did not stop: {failure}")
    return True


def _content(name: str, before: "DestroyPreview") -> dict[str, Any]:
    return {
        "deployment": name,
        "stack_before": before.stack,
        "running": before.running,
        "trains": before.trains,
        "dollars_an_hour": before.rate,
        "spent": before.guard.spent if before.guard else None,
        "unfetched": before.unfetched,
        "kept": [vars(kept) for kept in before.kept],
        "notes": before.notes,
    }


def _listed(things: "Sequence[FoundResource]") -> list[Mapping[str, Any]]:
    return [
        {"kind": each.kind, "id": each.identifier, "billed": each.billed, "outcome": each.outcome, "why": each.why}
        for each in things
    ]


def _result(name: str, done: "DestroyResult") -> str:
    from shoal.deployments.removal.kinds import KINDS
    from shoal.deployments.removal.sweep import KEPT

    left = sum(thing.costs for thing in done.things)
    stack = f"'{name}': the stack {'is ' if done.stack == 'deleted' else ''}{done.stack}; "
    again = f"run `shoal destroy {name}` again"
    unseen = f"more might be left, because {plural(done.unverified, 'request')} to AWS failed (see the table)"
    if done.costs:
        more = f"; {unseen}" if done.unverified else ""
        billed = f"left and billed: {plural(left, 'resource')}{more}"
        return f"{stack}{billed}; remove the causes shown in the table, and {again}"
    if done.unverified:
        return f"{stack}{unseen}; use credentials with the missing permissions, and {again}"
    kept = sum(thing.outcome == KEPT for thing in done.things)
    looked = f"checked {len(KINDS)} kinds of resources: nothing that costs money is left"
    return f"{stack}{looked}{_but_kept(kept)}"


def _but_kept(buckets: int) -> str:
    return f", except {plural(buckets, 'bucket')} that {'is' if buckets == 1 else 'are'} kept" if buckets else ""
