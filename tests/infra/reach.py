"""Which requests of nodes a stack's S3 gateway lets through: its policy, evaluated as S3 does for each request.

The one thing that is easy to get wrong: a gateway without a policy lets through everything. A stack that has none is
told from one whose policy allows nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.infra.invariants import Resources, as_list, of_type

OURS, THEIRS, AWS = "111111111111", "222222222222", "333333333333"
_PSEUDO = {"AWS::AccountId": OURS, "AWS::Partition": "aws", "AWS::URLSuffix": "amazonaws.com"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request to S3, with the accounts of its credentials (empty: none) and of its bucket."""

    action: str
    bucket: str
    of: str
    by: str = OURS
    key: str = "/some/key"

    @property
    def arn(self) -> str:
        """The resource: the bucket for an action on buckets, else an object."""
        return f"arn:aws:s3:::{self.bucket}{self.key if 'Object' in self.action or 'Upload' in self.action else ''}"


def passes(resources: Resources, request: Request) -> bool | None:
    """Whether the gateway lets the request through; None when there is no gateway, or one without a policy."""
    gateways = [each for each in of_type(resources, "AWS::EC2::VPCEndpoint").values() if _is_gateway(each)]
    if not gateways or "PolicyDocument" not in gateways[0]:
        return None
    (gateway,) = gateways
    return any(_allows(statement, request) for statement in _resolved(gateway["PolicyDocument"])["Statement"])


def wrong(resources: Resources, region: str) -> list[Request]:
    """The requests that the gateway lets through and should not, or the other way around."""
    with_shell = not all(map(_is_gateway, of_type(resources, "AWS::EC2::VPCEndpoint").values()))
    with_emr = bool(of_type(resources, "AWS::EMR::Cluster"))
    expected = {
        **dict.fromkeys(of_our_work(), True),
        **dict.fromkeys(that_machines_need(region), True),
        **dict.fromkeys(that_a_shell_needs(region), with_shell),
        **dict.fromkeys(that_emr_needs(region), with_emr),
        **dict.fromkeys(that_carry_data_away(region), False),
    }
    return [request for request, right in expected.items() if passes(resources, request) is not right]


def of_our_work() -> Iterator[Request]:
    """By the nodes' roles: anything in buckets of the account, and reading where somebody else has let them in."""
    for action in ("GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload", "ListBucket", "GetBucketLocation"):
        yield Request(action=action, bucket="shoal-data", of=OURS)
    for action in ("GetObject", "ListBucket", "GetBucketLocation", "GetObjectVersion"):
        yield Request(action=action, bucket="their-reviews", of=THEIRS)


def that_machines_need(region: str) -> Iterator[Request]:
    """Without credentials, or with a role's: Amazon Linux's packages."""
    for by in ("", OURS):
        yield Request(action="GetObject", bucket=f"al2023-repos-{region}-de612dc2", of=AWS, by=by)


def that_a_shell_needs(region: str) -> Iterator[Request]:
    """Without credentials: what Systems Manager's agent fetches."""
    for bucket in (f"amazon-ssm-{region}", f"aws-ssm-document-attachments-{region}"):
        yield Request(action="GetObject", bucket=bucket, of=AWS, by="")


def that_emr_needs(region: str) -> Iterator[Request]:
    """By EMR's own credentials on its nodes."""
    log = "aws157-logs-prod" if region == "us-east-1" else f"aws157-logs-prod-{region}"
    yield Request(action="GetObject", bucket=f"repo.{region}.emr.amazonaws.com", of=AWS, by="")
    yield Request(action="PutObject", bucket=log, of=AWS, by=AWS)
    yield Request(action="PutObject", bucket=f"prod.{region}.appinfo.src", of=AWS, by=AWS)


def that_carry_data_away(region: str) -> Iterator[Request]:
    """Into a bucket of another account, by the nodes' own roles or by other credentials."""
    for by in (OURS, THEIRS, ""):
        for action in ("PutObject", "PutObjectAcl", "DeleteObject", "AbortMultipartUpload"):
            yield Request(action=action, bucket="theirs", of=THEIRS, by=by)
    for by in (THEIRS, ""):
        for action in ("GetObject", "ListBucket"):
            yield Request(action=action, bucket="theirs", of=THEIRS, by=by)
    yield Request(action="CreateBucket", bucket="theirs", of=THEIRS, by=THEIRS)
    for bucket in (f"al2023-repos-{region}-de612dc2", f"amazon-ssm-{region}", f"repo.{region}.emr.amazonaws.com"):
        yield Request(action="PutObject", bucket=bucket, of=AWS)
    # Names that are merely like AWS's.
    for bucket in (f"x-al2023-repos-{region}-de612dc2", "aws157-logs-prod-x", f"xrepo.{region}.emr.amazonaws.com"):
        yield Request(action="GetObject", bucket=bucket, of=THEIRS, by="")
        yield Request(action="PutObject", bucket=bucket, of=THEIRS, by=THEIRS)


def _is_gateway(endpoint: Mapping[str, Any]) -> bool:
    return bool(endpoint["VpcEndpointType"] == "Gateway")


def _allows(statement: Mapping[str, Any], request: Request) -> bool:
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


def _resolved(value: Any) -> Any:
    """The template's value, as CloudFormation makes it."""
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
