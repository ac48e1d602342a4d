"""`shoal logs`: the newest logs of a deployment's steps, nodes and guard."""

from typing import TYPE_CHECKING

from bootstrap.cli.command import command, option
from bootstrap.cli.output import json_option, show
from bootstrap.cli.target import Target, target_options
from common.errors import UsageError

if TYPE_CHECKING:
    from bootstrap.lifecycle.logs import LogExcerpt


@command(
    short_help="show what a deployment's steps and nodes reported",
    help="Show a deployment's newest EMR steps and why they failed, what its GPU nodes reported of their first boot, "
    "and the last lines of its guard.",
    epilog="Example: shoal logs demo --node i-0123456789abcdef0 --tail 20",
)
@target_options
@option("--node", metavar="ID", help="only this node, by its instance id")
@option("--step", type=int, metavar="N", help="only the newest N steps (default: the newest 5, and all other logs)")
@option("--tail", type=int, default=10, metavar="N", help="the last N lines of each log (default: 10)")
@json_option
def run(target: Target, node: str | None, step: int | None, tail: int, as_json: bool) -> int:
    """Run `shoal logs`."""
    from bootstrap.lifecycle import logs, status

    for flag, value in (("--step", step), ("--tail", tail)):
        if value is not None and value < 1:
            raise UsageError(f"{flag} is {value}, but must be at least 1")
    if node and step:
        raise UsageError("--node shows only a node, and --step only steps; give one of them")
    name, account = target.name, target.account
    now = status.read_status(name, account)
    excerpts: list[LogExcerpt] = []
    if not node:
        excerpts += logs.steps(account, now, newest=step or 5, tail=tail)
    if not step:
        excerpts += logs.nodes(account, now, tail=tail, only=node)
    if not (node or step) and (guard := logs.guard(account, now, tail=tail)):
        excerpts.append(guard)
    text = "\n".join(line for each in excerpts for line in _lines(each))
    show({"said": [vars(each) for each in excerpts]}, text or "there are no logs yet", as_json=as_json)
    return 0


def _lines(excerpt: "LogExcerpt") -> list[str]:
    return [f"{excerpt.who}: {excerpt.state}", *(f"    {line}" for line in excerpt.lines)]
