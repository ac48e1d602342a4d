"""Compares the grants of a stack's roles with the recorded checks."""

import re
from fnmatch import fnmatch

from shoal_local_aws.permissions.record import read_checks

from tests.infra.replay import read_policies, unneeded

_OWN = re.compile(r"\bg[0-9]+\b|-[0-9a-f]{8,}\b|[0-9a-f]{8}-[0-9a-f]{8,}")


def mistaken_grants(template, folder, *, stack, roles, by_speed=()):
    """Yield grants of these roles, by their logical ids, that no recorded check needs and no reason explains, and
    reasons for needed grants. Grants `by_speed` may be needed or not, as fast as the machine is. AWS's own policies are
    left out."""
    checks, policies = list(read_checks(folder)), read_policies(folder)
    reasons = _reasons(template)
    for role in roles:
        (who,) = (each for each in policies if each.startswith(f"assumed-role/{stack}-{role}-"))
        own = [policy for policy in policies[who] if not any(statement["sid"] for statement in policy)]
        found = [grant.value for grant in unneeded([each for each in checks if each.who == who], own)]
        explained = reasons.get(role, {})
        for grant in found:
            if not any(fnmatch(grant, pattern) for pattern in explained):
                yield f"{role} may {grant}, which nothing needs"
        for pattern in explained:
            if (role, pattern) not in by_speed and not any(fnmatch(grant, pattern) for grant in found):
                yield f"{role} has a reason for {pattern}, which is needed"


def needed_by_none(folder, role):
    """Return the grants that a role has in several deployments and needed in none. A grant has the actions of its
    statement, and the action or resource, without names of deployments and resources."""
    checks, policies = list(read_checks(folder)), read_policies(folder)
    found = [
        {(*grant.statement["actions"], _OWN.sub("", grant.value)) for grant in unneeded(asked, own)}
        for who, own in policies.items()
        if f"-{role}-" in who and own and (asked := [each for each in checks if each.who == who])
    ]
    assert found, f"no {role} has asked for anything"
    return set.intersection(*found)


def _reasons(template):
    from shoal_guard.grants import UNEXERCISED  # loads the CDK

    found = {}
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::IAM::Policy":
            reasons = found.setdefault(resource["Properties"]["Roles"][0]["Ref"], {})
            reasons.update(resource.get("Metadata", {}).get(UNEXERCISED, {}))
    return found
