"""Custom resource that cleans when it is deleted: it empties a bucket, removes rules between security groups, or
deletes parameters. Another kind of it is a claim, which records whose the deployment is and refuses to become
another's.

It must always answer, also when it fails: without an answer CloudFormation waits for its time limit. So it stops
before Lambda stops it.
"""

import json
import re
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

import boto3
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import IpPermissionOutputTypeDef, IpPermissionTypeDef
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ErrorTypeDef, ObjectIdentifierTypeDef

_RESERVE_MS = 20_000
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GONE = ("InvalidGroup.NotFound", "InvalidPermission.NotFound")


class UnfinishedError(Exception):
    """There was more to do than time; deleting the stack again goes on."""


class ClaimedError(Exception):
    """The deployment is another's."""


def handler(event: dict[str, Any], context: Any) -> None:
    """Answer CloudFormation's request: a `Delete` cleans, an `Update` of a claim may be refused."""
    reason, name = "", event.get("PhysicalResourceId", event["LogicalResourceId"])
    try:
        properties = event["ResourceProperties"]
        if event["RequestType"] == "Delete":
            clean(properties, context.get_remaining_time_in_millis)
        elif "Claim" in properties:
            name = claim(properties["Claim"], event.get("PhysicalResourceId"))
    except ClaimedError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    answer(event, name, reason)


def claim(requested: dict[str, str], current: str | None) -> str:
    """The claim as the resource's id, which CloudFormation keeps: what was claimed first, also when it rolls back."""
    claimed = f"{requested['Owner']}/{requested['Topology']}"
    if current in (None, claimed):
        return claimed
    owner, _, topology = str(current).partition("/")
    raise ClaimedError(
        f"the deployment '{requested['Deployment']}' belongs to {owner} (topology {topology}); choose another name by "
        "-c deployment=NAME, or destroy that one first."
    )


def clean(properties: dict[str, Any], milliseconds_left: Callable[[], int]) -> None:
    """Clean what the properties name: `Bucket`, `SecurityGroups`, `Parameters`."""
    if "Bucket" in properties:
        empty(properties["Bucket"], milliseconds_left)
    revoke_group_rules(properties.get("SecurityGroups", []))
    if "Parameters" in properties:
        # Those that are not there are no error.
        boto3.client("ssm").delete_parameters(Names=properties["Parameters"])


def empty(bucket: str, milliseconds_left: Callable[[], int]) -> None:
    """Delete every version of every object, and every unfinished upload; a bucket that is gone is empty."""
    s3 = boto3.client("s3")
    try:
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            for batch in batches({"Key": each["Key"], "VersionId": each["VersionId"]} for each in found):
                if milliseconds_left() < _RESERVE_MS:
                    raise UnfinishedError(f"{bucket} still holds objects; delete the stack again to go on.")
                for refused in delete(s3, bucket, batch):
                    raise UnfinishedError(f"{bucket} kept {refused['Key']}: {refused['Message']}")
        for key, upload in unfinished_uploads(s3, bucket):
            s3.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise


def batches(objects: "Iterable[ObjectIdentifierTypeDef]") -> "Iterator[list[ObjectIdentifierTypeDef]]":
    """What to delete at once: objects with a name that XML cannot carry alone, and all others together.

    One such name in a request makes S3 refuse all of it; and anybody who may write can have chosen it.
    """
    together: list[ObjectIdentifierTypeDef] = []
    for each in objects:
        if _NOT_IN_XML.search(each["Key"]):
            yield [each]
        else:
            together.append(each)
    if together:
        yield together


def delete(s3: "S3Client", bucket: str, batch: "list[ObjectIdentifierTypeDef]") -> "Sequence[ErrorTypeDef]":
    """Delete one of the batches, of at most 1000; returns what S3 keeps, which it says in an answer of success."""
    if _NOT_IN_XML.search(batch[0]["Key"]):
        named: dict[str, Any] = {**batch[0]}
        s3.delete_object(Bucket=bucket, **named)  # the name is in the address, percent-encoded
        return ()
    return s3.delete_objects(Bucket=bucket, Delete={"Objects": batch, "Quiet": True}).get("Errors", ())


def unfinished_uploads(s3: "S3Client", bucket: str) -> Iterator[tuple[str, str]]:
    """The names and ids of a bucket's unfinished uploads.

    In this list, as in no other of S3, botocore leaves names as they are: those that XML cannot carry come encoded only
    if that is asked for, and then the marker of the next page comes so too.
    """
    marker: dict[str, Any] = {}
    while True:
        page = s3.list_multipart_uploads(Bucket=bucket, EncodingType="url", **marker)
        for upload in page.get("Uploads", ()):
            yield unquote_plus(upload["Key"]), upload["UploadId"]
        if not page["IsTruncated"]:
            return
        marker = {"KeyMarker": unquote_plus(page["NextKeyMarker"]), "UploadIdMarker": page["NextUploadIdMarker"]}


def revoke_group_rules(groups: list[str]) -> None:
    """Remove the rules by which the groups refer to groups; two that refer to each other cannot be deleted."""
    ec2 = boto3.client("ec2")
    for group in groups:
        try:
            found = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
        except ClientError as error:
            if error.response["Error"]["Code"] not in _GONE:
                raise
            continue
        for revoke, rules in (
            (ec2.revoke_security_group_ingress, found["IpPermissions"]),
            (ec2.revoke_security_group_egress, found["IpPermissionsEgress"]),
        ):
            for part in _between_groups(rules):
                try:
                    revoke(GroupId=group, IpPermissions=[part])
                except ClientError as error:
                    if error.response["Error"]["Code"] not in _GONE:
                        raise


def _between_groups(rules: "list[IpPermissionOutputTypeDef]") -> "Iterator[IpPermissionTypeDef]":
    """What each rule lets through from or to one group; ports are left out where all are meant.

    One by one: asked to revoke several, of which one has gone meanwhile, EC2 revokes none.
    """
    for rule in rules:
        for pair in rule["UserIdGroupPairs"]:
            part: IpPermissionTypeDef = {
                "IpProtocol": rule["IpProtocol"],
                "UserIdGroupPairs": [{"GroupId": pair["GroupId"]}],
            }
            if "FromPort" in rule:
                part |= {"FromPort": rule["FromPort"], "ToPort": rule["ToPort"]}
            yield part


def answer(event: dict[str, Any], name: str, reason: str) -> None:
    """Tell CloudFormation; an empty reason is success."""
    body = {
        "Status": "FAILED" if reason else "SUCCESS",
        "Reason": reason[:1000] or "Done.",
        "PhysicalResourceId": name,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    request = urllib.request.Request(  # noqa: S310 -- the address is CloudFormation's own
        event["ResponseURL"],
        data=json.dumps(body).encode(),
        method="PUT",
        headers={"Content-Type": ""},  # the address is signed for an empty one
    )
    urllib.request.urlopen(request, timeout=30).close()  # noqa: S310
