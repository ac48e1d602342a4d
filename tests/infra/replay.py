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
    return _allow([_parsed(policy) for policy in policies], request_of(check))


def unneeded(checks, policies):
    """Yield the grants without which the policies would still allow all checks."""
    parsed = [_parsed(policy) for policy in policies]
    every = {(each.action, each.resource, repr(each.context)): request_of(each) for each in checks}
    asked = [each for each in every.values() if _allow(parsed, each)]
    for number, policy in enumerate(policies):
        for place, statement in enumerate(policy):
            if statement["effect"] != "Allow":
                continue
            concerned = [each for each in asked if _allow([[parsed[number][place]]], each)]
            for part in ("actions", "resources"):
                for value in statement[part]:
                    rest = [each for each in statement[part] if each != value]
                    less = [each for each in parsed[number] if each is not parsed[number][place]]
                    less += [identity.statement(**{**statement, part: rest})] if rest else []
                    others = [*parsed[:number], less, *parsed[number + 1 :]]
                    if all(_allow(others, each) for each in concerned):
                        yield Grant(statement, part, value)


def _parsed(policy):
    return [identity.statement(**each) for each in policy]


def _allow(parsed, request):
    return bool(identity.evaluate(request, parsed).decision == "Allow")
