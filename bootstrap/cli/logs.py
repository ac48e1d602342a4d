"""`shoal logs`: what a deployment's steps, nodes and guard said."""

import argparse
from typing import TYPE_CHECKING, Any

from bootstrap.cli.named import account_of, add_name, name_of
from bootstrap.cli.output import add_json, show
from bootstrap.errors import UsageError

if TYPE_CHECKING:
    from bootstrap.lifecycle.logs import Said


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "logs",
        help="show what a deployment's steps and nodes said",
        description="Show a deployment's newest EMR steps and why they failed, what its GPU nodes reported of their "
        "first boot, and the last lines of its guard.",
        epilog="Example: shoal logs demo --node i-0123456789abcdef0 --tail 20",
    )
    add_name(parser)
    parser.add_argument("--node", metavar="ID", help="one node alone, by its instance's id")
    parser.add_argument("--step", type=int, metavar="N", help="the newest N steps alone (default: 5, and all else)")
    parser.add_argument("--tail", type=int, default=10, metavar="N", help="lines of each (default: %(default)s)")
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from bootstrap.lifecycle import logs, status

    for option, value in (("--step", args.step), ("--tail", args.tail)):
        if value is not None and value < 1:
            raise UsageError(f"{option} is {value}, but must be at least 1")
    if args.node and args.step:
        raise UsageError("--node and --step each show one thing alone; name one")
    name, account = name_of(args), account_of(args)
    now = status.look(name, account)
    said: list[Said] = []
    if not args.node:
        said += logs.steps(account, now, newest=args.step or 5, tail=args.tail)
    if not args.step:
        said += logs.nodes(account, now, tail=args.tail, only=args.node)
    if not (args.node or args.step) and (guard := logs.guard(account, now, tail=args.tail)):
        said.append(guard)
    text = "\n".join(line for each in said for line in _lines(each))
    show(args, {"said": [vars(each) for each in said]}, text or "nobody has said anything yet")
    return 0


def _lines(said: "Said") -> list[str]:
    return [f"{said.who}: {said.state}", *(f"    {line}" for line in said.lines)]
