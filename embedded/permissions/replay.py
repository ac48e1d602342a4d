"""Replays recorded checks against other policies, and finds which parts of a policy no check needs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from embedded.permissions.record import Check, Statement
from embedded.seams import identity

Policy = list[Statement]


class Grant(NamedTuple):
    """A part of a policy without which it allows less: an action of a statement, or a resource."""

    statement: Statement
    part: str
    value: str


def request_of(check: Check) -> Any:
    """What was asked for, as ministack evaluates policies for it."""
    context = {"aws:tagkeys": None, **{name.lower(): value for name, value in check.context.items()}}
    return identity.asked(
        principal_arn=check.principal,
        principal_type="AssumedRole" if check.who.startswith("assumed-role/") else "User",
        principal_account=check.principal.split(":")[4],
        action=check.action,
        resource_arn=check.resource,
        region=check.region,
        secure_transport=True,
        service_context=context,
    )


def is_allowed(check: Check, policies: Sequence[Policy]) -> bool:
    """Whether these policies, and nothing else, allow what was asked for."""
    parsed = [[identity.statement(**each) for each in policy] for policy in policies]
    return bool(identity.evaluate(request_of(check), parsed).decision == "Allow")


def unneeded(checks: Iterable[Check], policies: Sequence[Policy]) -> Iterator[Grant]:
    """The grants without which everything that these policies allow, of what was asked for, would be allowed all the
    same."""
    every = {(each.action, each.resource, repr(each.context)): each for each in checks}
    asked = [each for each in every.values() if is_allowed(each, policies)]
    for number, policy in enumerate(policies):
        for statement in policy:
            if statement["effect"] != "Allow":
                continue
            for part in ("actions", "resources"):
                for value in statement[part]:
                    rest = [each for each in statement[part] if each != value]
                    less = [each for each in policy if each is not statement]
                    less += [{**statement, part: rest}] if rest else []
                    others = [less if place == number else each for place, each in enumerate(policies)]
                    if all(is_allowed(each, others) for each in asked):
                        yield Grant(statement, part, value)
