"""Evaluates the policy of a stack's S3 gateway for requests of nodes, like S3.

A gateway without a policy allows everything. Do not confuse it with a gateway that has a policy that allows nothing.
"""

import itertools
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml

from tests.infra.invariants import as_list, of_type

OURS, THEIRS, AWS = "111111111111", "222222222222", "333333333333"
_ACCOUNTS = {"us": OURS, "them": THEIRS, "AWS": AWS, "nobody": ""}
_PSEUDO = {"AWS::AccountId": OURS, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request to S3, with the accounts of its credentials (empty without credentials) and of its bucket."""

    action: str
    bucket: str
    of: str
    by: str = OURS
    key: str = "/some/key"

    @property
    def arn(self):
        """ARN of the resource: the bucket for an action on buckets, else an object."""
        return f"arn:aws:s3:::{self.bucket}{self.key if 'Object' in self.action or 'Upload' in self.action else ''}"


def passes(resources, request):
    """Return whether the gateway allows the request; None without a gateway or without its policy."""
    gateways = [each for each in of_type(resources, "AWS::EC2::VPCEndpoint").values() if _is_gateway(each)]
    if not gateways or "PolicyDocument" not in gateways[0]:
        return None
    (gateway,) = gateways
    return any(_allows(statement, request) for statement in _resolved(gateway["PolicyDocument"])["Statement"])


def wrong(resources, region):
    with_shell = not all(map(_is_gateway, of_type(resources, "AWS::EC2::VPCEndpoint").values()))
    with_emr = bool(of_type(resources, "AWS::EMR::Cluster"))
    right = {"always": True, "with a shell": with_shell, "with EMR": with_emr, "never": False}
    expected = {request: right[when] for when, request in requests(region)}
    return [request for request, passing in expected.items() if passes(resources, request) is not passing]


def requests(region):
    """Yield pairs of the condition under which a request should pass, and the request."""
    log = "aws157-logs-prod" if region == "us-east-1" else f"aws157-logs-prod-{region}"
    for row in yaml.safe_load(Path(__file__).with_name("reach.yaml").read_text("utf-8")):
        for action, bucket, by in itertools.product(row["actions"], row["buckets"], row["by"]):
            name = bucket.format(region=region, log=log)
            yield row["passes"], Request(action=action, bucket=name, of=_ACCOUNTS[row["of"]], by=_ACCOUNTS[by])


def _is_gateway(endpoint):
    return bool(endpoint["VpcEndpointType"] == "Gateway")


def _allows(statement, request):
    assert statement["Effect"] == "Allow"
    assert statement["Principal"] == {"AWS": "*"}
    known = {"aws:ResourceAccount": request.of, "aws:PrincipalAccount": request.by}
    ((operator, expected),) = statement.get("Condition", {"StringEquals": {}}).items()
    assert operator == "StringEquals"
    return (
        any(fnmatchcase(f"s3:{request.action}", action) for action in as_list(statement["Action"]))
        and any(fnmatchcase(request.arn, resource) for resource in as_list(statement["Resource"]))
        and all(known[key] == value for key, value in expected.items())
    )


def _resolved(value):
    if isinstance(value, list):
        return [_resolved(each) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"Ref"}:
        return _PSEUDO[value["Ref"]]
    if set(value) == {"Fn::Join"}:
        between, parts = value["Fn::Join"]
        return str(between).join(_resolved(parts))
    return {key: _resolved(each) for key, each in value.items()}
