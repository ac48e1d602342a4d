"""Checks the permissions of each request. Requests as the account's root and requests without IAM action are
refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal_local_aws.permissions import identities, resources
from shoal_local_aws.permissions.record import ALLOWED, DENIED, ROOT, UNMAPPED, Check, Recorder
from shoal_local_aws.seams import ec2, emr, identity, requests, routing
from shoal_local_aws.seams.lookup import Record

_BY_OTHER_PATHS = ("elasticfilesystem", "s3")
"""Services that machines reach without an internet gateway: mount targets of EFS are in the VPC, and networks in tests
have no gateway endpoint for S3."""


def install(folder: Path) -> None:
    """Make the emulator check each request, and record the checks in `folder`."""
    resources.install()
    record, enforce, authenticate = Recorder(folder), identity.enforce.now, identity.authenticate_only.now

    def note(check: Check, who: Any) -> None:
        record.write(check, [[vars(each) for each in policy] for policy in getattr(who, "policies", None) or []])

    def enforced(
        key: str, action: str, service: str, region: str, resource_arn: str = "*", service_context: Record | None = None
    ) -> Any:
        who = identity.resolve(key, requests.account())
        own = getattr(resource_arn, "keys", {})
        for also, arn, keys in [("", resource_arn, own), *getattr(resource_arn, "also", ())]:
            asked = also or action
            context = {**(service_context or {}), **keys, **resources.tags_of(arn, asked.partition(":")[0])}
            refusal = enforce(key, asked, service, region, resource_arn=str(arn), service_context=context)
            check = Check(getattr(who, "arn", ""), asked, str(arn), DENIED, region, context)
            refusal = refusal or _refusal_of_endpoints(check)
            root = not refusal and identity.is_root(key)
            note(replace(check, decision=ROOT if root else DENIED if refusal else ALLOWED), who)
            if root:
                return identity.refused(
                    "AccessDenied", "The embedded AWS does not let clients act as the account's root."
                )
            # Rule: EC2 calls a missing permission UnauthorizedOperation. Source: "Error codes for the Amazon EC2 API".
            if refusal and also and service == "ec2":  # ministack's message would name a different action
                sentence = identity.denial(also, check.principal, str(arn), getattr(refusal, "decision", "") == "Deny")
                return identity.refused("UnauthorizedOperation", sentence)
            if refusal:
                return refusal
        return None

    def authenticated(service: str, headers: Record, query: Record, request: str) -> Any:
        who = identity.resolve(routing.access_key(headers, query), requests.account())
        note(Check(getattr(who, "arn", ""), service, "*", UNMAPPED), who)
        message = f"The embedded AWS refuses this request to {service}, because it does not know its IAM action."
        return authenticate(service, headers, query, request) or requests.json_error("AccessDeniedException", message)

    identity.enforce.put(enforced)
    identity.authenticate_only.put(authenticated)


def refusal(key: str, action: str, resource: str, context: Record | None = None) -> str:
    """Return why the owner of the access key `key` lacks permission for an action, or an empty string if permitted.

    Use this for an action that a service does on behalf of the owner without a request."""
    service = action.partition(":")[0]
    found = identity.enforce.now(
        key, action, service, requests.region(), resource_arn=resource, service_context=context
    )
    if found is None:
        return ""
    if not hasattr(found, "decision"):
        return str(found.message)
    return identity.denial(action, found.principal_arn, resource, found.decision == "Deny")


def is_allowed(role: str, session: str, actions: Sequence[str], resource: str, context: Record | None = None) -> bool:
    """Return whether a role (name or ARN) has permission for all `actions`, which a service does on its behalf in a
    session with this name."""
    key = identities.session_of(role, session).key
    return not any(refusal(key, action, resource, context) for action in actions)


def request_of(check: Check) -> Any:
    """Return the request of a check in the form that ministack's policy evaluation requires."""
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


def _refusal_of_endpoints(check: Check) -> Any:
    """Return a refusal if a machine's network has no path to the service, or if the policy of a VPC endpoint does not
    permit the request, and None otherwise. The session name of the caller is the id of the machine."""
    network, service = _network_of(check.principal.rpartition("/")[2]), check.action.partition(":")[0]
    # Rule: Traffic without a matching route is dropped. Source: "Route tables", Amazon VPC User Guide.
    if network and service not in _BY_OTHER_PATHS and not _reaches(network, service):
        message = f"Could not connect to {service}: {network} has neither an endpoint for it nor an internet gateway."
        return identity.refused("RequestTimeout", message)
    for endpoint in ec2.vpc_endpoints.values() if network else ():
        policy, name = endpoint.get("PolicyDocument"), str(endpoint["ServiceName"])
        if endpoint["VpcId"] != network or not name.endswith(f".{service}") or not policy:
            continue
        found = identity.evaluate_policy(policy, request_of(check))
        if found.decision != "Allow":
            found.principal_arn = check.principal
            return found
    return None


def _reaches(network: str, service: str) -> bool:
    """Return whether machines of a VPC reach a service, through an endpoint or the internet."""
    gateways = (each for record in ec2.internet_gateways.values() for each in record["Attachments"])
    endpoints = (each for each in ec2.vpc_endpoints.values() if each["ServiceName"].endswith(f".{service}"))
    return any(each["VpcId"] == network for each in (*gateways, *endpoints))


def _network_of(machine: str) -> str | None:
    if instance := ec2.instances.get(machine):
        return str(instance["VpcId"])
    cluster: dict[str, Any] = emr.clusters.get(machine) or {"Ec2InstanceAttributes": {}}
    subnet = ec2.subnets.get(cluster["Ec2InstanceAttributes"].get("Ec2SubnetId"))
    return str(subnet["VpcId"]) if subnet else None
