"""Checks each request: nobody acts as the account's root, and a request that no action of IAM covers is refused."""

from pathlib import Path
from typing import Any

from embedded.permissions import identities, resources
from embedded.permissions.record import ALLOWED, DENIED, ROOT, UNMAPPED, Check, Recorder
from embedded.seams import identity, requests, routing
from embedded.seams.lookup import Record


def install(folder: Path) -> None:
    """Check and record requests from now on."""
    resources.install()
    record, enforce, authenticate = Recorder(folder), identity.enforce.now, identity.authenticate_only.now

    def note(key: str, *check: Any) -> None:
        found = identity.resolve(key, requests.account())
        policies = [[vars(each) for each in policy] for policy in getattr(found, "policies", None) or []]
        record.write(Check(str(getattr(found, "arn", "")), *check), policies)

    def enforced(
        key: str, action: str, service: str, region: str, resource_arn: str = "*", service_context: Record | None = None
    ) -> Any:
        for asked, arn, keys in [("", resource_arn, service_context or {}), *getattr(resource_arn, "also", ())]:
            asked, namespace = asked or action, service
            context = {**(service_context or {}), **keys, **resources.tags_of(arn, asked.partition(":")[0])}
            refusal = enforce(key, asked, namespace, region, resource_arn=str(arn), service_context=context)
            root = not refusal and identity.is_root(key)
            decision = ROOT if root else DENIED if refusal else ALLOWED
            note(key, asked, str(arn), decision, region, context)
            if root:
                return identity.refused("AccessDenied", "The embedded AWS lets nobody act as the account's root.")
            if refusal:
                return refusal
        return None

    def authenticated(service: str, headers: Record, query: Record, request: str) -> Any:
        note(routing.access_key(headers, query), service, "*", UNMAPPED)
        message = f"The embedded AWS knows no action of IAM for this request of {service}, so nobody may make it."
        return authenticate(service, headers, query, request) or requests.json_error("AccessDeniedException", message)

    identity.enforce.put(enforced)
    identity.authenticate_only.put(authenticated)


def is_allowed(role: str, session: str, action: str, resource: str, context: Record | None = None) -> bool:
    """Whether a role, by its name or ARN, may do what a service does for it without a request, in `session`."""
    key = identities.session_of(role, session).key
    service = action.partition(":")[0]
    refusal = identity.enforce.now(
        key, action, service, requests.region(), resource_arn=resource, service_context=context
    )
    return refusal is None
