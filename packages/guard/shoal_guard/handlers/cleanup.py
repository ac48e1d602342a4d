"""Lambda function of the custom resources that clean up when a stack is deleted. It deletes buckets with their content,
stops training jobs, removes rules between security groups, and deletes parameters. It keeps a bucket that contains a
run that was not fetched. The custom resource `Claim` records the owner of a deployment and refuses updates by another
owner.

The function must always answer, even if it fails, because without an answer CloudFormation waits until its own time
limit. So the function stops its work before Lambda would stop it.
"""

import json
import re
import time
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

_MOST_BYTES = 16 << 20
_RESERVE_MS = 20_000
_PAUSE_SECONDS = 2.0
JOB = "-[0-9]{12}(-[0-9]{1,2})?"
"""Pattern for the rest of a training job's name after `job_prefix`: the start time of its run and the launch number."""
JOB_LOGS = "/aws/sagemaker/TrainingJobs"
"""Log group of all training jobs of an account. It has one stream for each host."""
GUARDDUTY = "GuardDutyManaged"  # tag of what its agent adds (AWS managed policy AmazonGuardDutyServiceRolePolicy)
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GONE = ("InvalidGroup.NotFound", "InvalidPermission.NotFound")
_ABSENT = ("404", "NoSuchKey", "NoSuchUpload", "NotFound", "KeyTooLongError")


class UnfinishedError(Exception):
    """The cleanup is not complete, because the time ran out or S3 refused a deletion. Deleting the stack again
    continues the cleanup."""


class ClaimedError(Exception):
    """The deployment belongs to another owner or topology."""


def handler(event: dict[str, Any], context: Any) -> None:
    """Answer a request of CloudFormation. `Delete` cleans up. An `Update` of a claim with another owner is refused."""
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
    """Return the claim, OWNER/TOPOLOGY. It becomes the physical id of the custom resource, which survives rollbacks.

    Raises ClaimedError if `current`, the recorded claim, has a different owner or topology.
    """
    claimed = f"{requested['Owner']}/{requested['Topology']}"
    if current in (None, claimed):
        return claimed
    owner, _, topology = str(current).partition("/")
    raise ClaimedError(
        f"the deployment '{requested['Deployment']}' belongs to {owner} (topology {topology}); choose a different name "
        "with -c deployment=NAME, or destroy that deployment first."
    )


def clean(properties: dict[str, Any], milliseconds_left: Callable[[], int]) -> None:
    """Clean up the resources that the properties name: `Bucket`, `Jobs`, `Network`, `SecurityGroups`, `Parameters`.

    With the prefixes `Runs` and `Fetched`, a bucket that contains a run that was not fetched is kept. With `Tag`, a
    bucket without this tag is kept, because a different construct of the stack has replaced it.
    """
    if "Bucket" in properties:
        delete_bucket(properties, milliseconds_left)
    if "Jobs" in properties:
        stop_jobs(properties["Jobs"], properties["Tag"], milliseconds_left)
    if "Network" in properties:
        delete_guardduty(properties["Network"], milliseconds_left)
    revoke_group_rules(properties.get("SecurityGroups", []))
    if "Parameters" in properties:
        # A missing parameter is not an error.
        boto3.client("ssm").delete_parameters(Names=properties["Parameters"])


def delete_bucket(properties: dict[str, Any], milliseconds_left: Callable[[], int]) -> None:
    """Empty and delete a bucket. Empty it again if objects have arrived since, such as the last logs of a cluster.

    Do not leave the deletion to CloudFormation. After this custom resource is deleted, nothing would empty the bucket
    again, and a single late object would block its deletion forever.
    """
    s3, bucket = boto3.client("s3"), properties["Bucket"]
    if "Tag" in properties and properties["Tag"] not in tags(s3, bucket):
        print(f"{bucket} is kept, because it no longer has the tag {properties['Tag']}")  # noqa: T201 -- the log
        return
    while not ("Runs" in properties and is_kept(properties)):
        empty(s3, bucket, milliseconds_left)
        try:
            s3.delete_bucket(Bucket=bucket)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code not in ("BucketNotEmpty", "NoSuchBucket"):
                raise
            if code == "BucketNotEmpty":
                _require_time(milliseconds_left, f"objects still arrive in {bucket}")
                continue
        return


def tags(s3: "S3Client", bucket: str) -> set[str]:
    """Return the keys of a bucket's tags, or an empty set for a missing bucket."""
    try:
        return {each["Key"] for each in s3.get_bucket_tagging(Bucket=bucket)["TagSet"]}
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("NoSuchTagSet", "NoSuchBucket"):
            raise
        return set()


def is_kept(properties: dict[str, Any]) -> bool:
    """Return whether a bucket contains runs that were not fetched. Return True, too, if that is unknown."""
    try:
        runs = unfetched(boto3.client("s3"), properties["Bucket"], properties["Runs"], properties["Fetched"])
    except Exception as error:
        print(f"{properties['Bucket']} is kept, because its runs are unreadable: {error}")  # noqa: T201 -- the log
        return True
    print(f"runs of {properties['Bucket']} that were not fetched: {', '.join(runs) or 'none'}")  # noqa: T201
    return bool(runs)


def unfetched(s3: "S3Client", bucket: str, runs: str, fetched: str) -> list[str]:
    """Return the runs below the prefix `runs` with a result that was not fetched in its current version.

    Results are all objects of a run except partial files and the nodes' records of attempts.
    """
    found: dict[str, dict[str, str]] = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=runs):
        for each in page.get("Contents", ()):
            run, _, name = each["Key"].removeprefix(runs).partition("/")
            of_attempts = name == "ended.json" or name.startswith("attempts/")
            of_attempts |= is_partial(name)
            if not of_attempts and (each["Size"] or not each["Key"].endswith("/")):  # skip folder placeholders
                found.setdefault(run, {})[name] = each["ETag"]
    return [
        run
        for run, objects in sorted(found.items())
        if not objects.items() <= fetched_etags(s3, bucket, f"{fetched}{run}.json").items()
    ]


def is_partial(name: str) -> bool:
    """Return whether a name belongs to an unfinished file. SageMaker copies such files to the bucket, too."""
    return any(part.startswith(".") and part.endswith(".partial") for part in name.split("/"))


def is_absent(error: ClientError) -> bool:
    """Return whether S3 answers that an object or an upload does not exist.

    S3's error document quotes the key. If XML cannot represent the key, botocore cannot parse the document, and the
    code is the HTTP status. A key of more than 1,024 bytes cannot exist.
    """
    return error.response["Error"]["Code"] in _ABSENT


def fetched_etags(s3: "S3Client", bucket: str, key: str) -> dict[str, Any]:
    """Return the ETags that a run's objects had at the last fetch, by name. Return an empty dictionary if the record of
    the fetch at `key` is broken or missing."""
    try:
        found = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read(_MOST_BYTES))
    except ClientError as error:
        if not is_absent(error):
            raise
        return {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def empty(s3: "S3Client", bucket: str, milliseconds_left: Callable[[], float]) -> None:
    """Delete every version of every object, and every unfinished upload. A missing bucket counts as empty.

    Raises UnfinishedError if the time runs out or S3 refuses to delete an object.
    """
    try:
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            for batch in batches({"Key": each["Key"], "VersionId": each["VersionId"]} for each in found):
                _require_time(milliseconds_left, f"{bucket} still contains objects")
                for refused in delete(s3, bucket, batch):
                    raise UnfinishedError(f"s3://{bucket}/{refused['Key']} could not be deleted: {refused['Message']}")
        for key, upload in unfinished_uploads(s3, bucket):
            _require_time(milliseconds_left, f"{bucket} still contains unfinished uploads")
            abort(s3, bucket, key, upload)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise


def _require_time(milliseconds_left: Callable[[], float], what: str) -> None:
    if milliseconds_left() < _RESERVE_MS:
        raise UnfinishedError(f"{what}; delete the stack again to continue.")


def batches(objects: "Iterable[ObjectIdentifierTypeDef]") -> "Iterator[list[ObjectIdentifierTypeDef]]":
    """Yield the objects in batches, one for each delete request. A key that XML cannot represent gets its own batch.

    S3 refuses a whole request that contains such a key, and anyone who may write objects can create one.
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
    """Delete a batch of at most 1000 objects. Return the errors that S3 lists in its response."""
    if _NOT_IN_XML.search(batch[0]["Key"]):
        named: dict[str, Any] = {**batch[0]}
        s3.delete_object(Bucket=bucket, **named)  # this request has the key in its URL, percent-encoded
        return ()
    return s3.delete_objects(Bucket=bucket, Delete={"Objects": batch, "Quiet": True}).get("Errors", ())


def abort(s3: "S3Client", bucket: str, key: str, upload: str) -> None:
    """Abort an unfinished upload. Do nothing if it was completed or aborted since it was listed."""
    try:
        s3.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
    except ClientError as error:
        if not is_absent(error):
            raise


def unfinished_uploads(s3: "S3Client", bucket: str) -> Iterator[tuple[str, str]]:
    """Yield the key and the id of each unfinished upload of a bucket.

    For all other list calls, botocore requests URL-encoded keys and decodes them. So do this here, for the keys and for
    the marker of the next page.
    """
    marker: dict[str, Any] = {}
    while True:
        page = s3.list_multipart_uploads(Bucket=bucket, EncodingType="url", **marker)
        for upload in page.get("Uploads", ()):
            yield unquote_plus(upload["Key"]), upload["UploadId"]
        if not page["IsTruncated"]:
            return
        marker = {"KeyMarker": unquote_plus(page["NextKeyMarker"]), "UploadIdMarker": page["NextUploadIdMarker"]}


def stop_jobs(deployment: str, tag: str, milliseconds_left: Callable[[], int]) -> None:
    """Stop a deployment's SageMaker training jobs, wait until they have stopped, and delete their log streams.

    The wait is necessary because jobs write checkpoints into the data bucket while they stop.
    """
    sagemaker = boto3.client("sagemaker")
    while jobs := running_jobs(sagemaker, deployment, tag):
        for each in jobs:
            if each["TrainingJobStatus"] == "InProgress":
                stop_job(sagemaker, each["TrainingJobName"])
        _require_time(milliseconds_left, f"the training job {jobs[0]['TrainingJobName']} is still running")
        time.sleep(_PAUSE_SECONDS)
    logs = boto3.client("logs")
    try:
        for name in list(streams_of_jobs(logs, deployment)):
            _require_time(milliseconds_left, "some log streams of training jobs are left")
            logs.delete_log_stream(logGroupName=JOB_LOGS, logStreamName=name)
    except Exception as error:  # leftover logs cost almost nothing, and must not block the stack's deletion
        print(f"log streams of training jobs are left in {JOB_LOGS}: {error}")  # noqa: T201 -- the log


def stop_job(sagemaker: Any, name: str) -> None:
    """Ask a training job to write a checkpoint and stop. Do nothing if it is no longer running."""
    try:
        sagemaker.stop_training_job(TrainingJobName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationException":
            raise


def running_jobs(sagemaker: Any, deployment: str, tag: str) -> list[dict[str, Any]]:
    """Return the running training jobs that have the name and the tag of this deployment."""
    found = []
    for status in ("InProgress", "Stopping"):
        pages = sagemaker.get_paginator("list_training_jobs").paginate(
            StatusEquals=status, NameContains=job_prefix(deployment)
        )
        for each in (job for page in pages for job in page["TrainingJobSummaries"]):
            if is_job(each["TrainingJobName"], deployment):
                tags = sagemaker.list_tags(ResourceArn=each["TrainingJobArn"])["Tags"]
                found += [each] if {"Key": tag, "Value": deployment} in tags else []
    return found


def job_prefix(deployment: str) -> str:
    """Return the prefix of a deployment's training job names. It is in lower case, as SageMaker's ARNs are."""
    return f"shoal-{deployment.lower()}"


def is_job(name: str, deployment: str) -> bool:
    return re.fullmatch(re.escape(job_prefix(deployment)) + JOB, name) is not None


def streams_of_jobs(logs: Any, deployment: str) -> Iterator[str]:
    prefix = f"{job_prefix(deployment)}-"
    try:
        for page in logs.get_paginator("describe_log_streams").paginate(
            logGroupName=JOB_LOGS, logStreamNamePrefix=prefix
        ):
            for each in page["logStreams"]:
                if is_job(each["logStreamName"].partition("/")[0], deployment):
                    yield each["logStreamName"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise


def delete_guardduty(network: str, milliseconds_left: Callable[[], int]) -> None:
    """Delete the endpoint that GuardDuty's agent added to a VPC, wait until it is gone, and delete its group."""
    ec2: Any = boto3.client("ec2")
    added = [{"Name": "vpc-id", "Values": [network]}, {"Name": "tag-key", "Values": [GUARDDUTY]}]
    while found := ec2.describe_vpc_endpoints(Filters=added)["VpcEndpoints"]:
        name = found[0]["VpcEndpointId"]
        refused = ec2.delete_vpc_endpoints(VpcEndpointIds=[name])["Unsuccessful"]
        reason = refused[0]["Error"]["Message"] if refused else "it is being deleted"
        _require_time(milliseconds_left, f"GuardDuty's endpoint {name} is left ({reason})")
        time.sleep(_PAUSE_SECONDS)
    for group in ec2.describe_security_groups(Filters=added)["SecurityGroups"]:
        ec2.delete_security_group(GroupId=group["GroupId"])


def revoke_group_rules(groups: list[str]) -> None:
    """Remove the rules of these groups that refer to other groups, because EC2 does not delete groups that refer to
    each other."""
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
            for part in between_groups(rules):
                try:
                    revoke(GroupId=group, IpPermissions=[part])
                except ClientError as error:
                    if error.response["Error"]["Code"] not in _GONE:
                        raise


def between_groups(rules: "list[IpPermissionOutputTypeDef]") -> "Iterator[IpPermissionTypeDef]":
    """Yield a separate rule for each security group that `rules` name. A rule for all protocols has no ports.

    Revoke them one by one, because EC2 revokes none of several rules if one of them no longer exists.
    """
    for rule in rules:
        for pair in rule.get("UserIdGroupPairs", ()):
            part: IpPermissionTypeDef = {
                "IpProtocol": rule["IpProtocol"],
                "UserIdGroupPairs": [{"GroupId": pair["GroupId"]}],
            }
            if "FromPort" in rule:
                part |= {"FromPort": rule["FromPort"], "ToPort": rule["ToPort"]}
            yield part


def answer(event: dict[str, Any], name: str, reason: str) -> None:
    """Send the result of a request to CloudFormation. An empty `reason` means success."""
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
        headers={"Content-Type": ""},  # the URL is signed for an empty content type
    )
    urllib.request.urlopen(request, timeout=30).close()  # noqa: S310
