"""Replays recorded checks against other policies, and finds which parts of a policy no check needs."""

import json
from typing import NamedTuple

from shoal_local_aws.permissions.checks import request_of
from shoal_local_aws.permissions.record import FILE, Statement
from shoal_local_aws.seams import identity

Policy = list[Statement]


class Grant(NamedTuple):
    """Part of a policy: an action or a resource of a statement."""

    statement: Statement
    part: str
    value: str


def read_policies(folder):
    """Return the last policies of each user and role with checks, by `Check.who`.

    They include those of a role with checks during the deletion of its stack and policies.
    """
    found = {}
    for line in map(json.loads, (folder / FILE).read_text().splitlines()):
        if "policies" in line and (any(line["policies"]) or line["who"] not in found):
            found[line["who"]] = line["policies"]
    return found


def is_allowed(check, policies):
    parsed = [[identity.statement(**each) for each in policy] for policy in policies]
    return bool(identity.evaluate(request_of(check), parsed).decision == "Allow")


def unneeded(checks, policies):
    """Yield the grants without which the policies would still allow all checks."""
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
