"""Evaluates the policy of a stack's S3 gateway for requests of nodes (`reach.yaml`), like S3."""

import itertools
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from tests.infra.handled import ACCOUNT
from tests.infra.invariants import as_list, of_type

_ACCOUNTS = {"us": ACCOUNT, "them": "222222222222", "AWS": "333333333333", "nobody": ""}


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request to S3, with the accounts of its credentials (empty without credentials) and of its bucket."""

    action: str
    resource: str
    of: str
    by: str


def wrong(stack, region):
    """Return the requests that the gateway of a stack (`Handled`) wrongly allows or refuses."""
    endpoints = of_type(stack.resources, "AWS::EC2::VPCEndpoint").values()
    (gateway,) = (each for each in endpoints if each["VpcEndpointType"] == "Gateway")
    statements = stack.resolved(gateway["PolicyDocument"])["Statement"]
    with_emr = bool(of_type(stack.resources, "AWS::EMR::Cluster"))
    right = {"always": True, "with a shell": len(endpoints) > 1, "with EMR": with_emr, "never": False}
    return [
        request
        for when, request in requests(region)
        if any(_allows(each, request) for each in statements) is not right[when]
    ]


def requests(region):
    """Yield pairs of the condition under which a request should pass, and the request."""
    log = "aws157-logs-prod" if region == "us-east-1" else f"aws157-logs-prod-{region}"
    for row in yaml.safe_load(Path(__file__).with_name("reach.yaml").read_text("utf-8")):
        for action, bucket, by in itertools.product(row["actions"], row["buckets"], row["by"]):
            key = "/some/key" if "Object" in action or "Upload" in action else ""
            resource = f"arn:aws:s3:::{bucket.format(region=region, log=log)}{key}"
            accounts = {"of": _ACCOUNTS[row["of"]], "by": _ACCOUNTS[by]}
            yield row["passes"], Request(action=f"s3:{action}", resource=resource, **accounts)


def _allows(statement, request):
    assert (statement["Effect"], statement["Principal"]) == ("Allow", {"AWS": "*"})
    known = {"aws:ResourceAccount": request.of, "aws:PrincipalAccount": request.by}
    ((operator, expected),) = statement.get("Condition", {"StringEquals": {}}).items()
    assert operator == "StringEquals"
    return (
        any(fnmatchcase(request.action, action) for action in as_list(statement["Action"]))
        and any(fnmatchcase(request.resource, resource) for resource in as_list(statement["Resource"]))
        and all(known[key] == value for key, value in expected.items())
    )
