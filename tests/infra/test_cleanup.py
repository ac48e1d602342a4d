import http.server
import json
import threading
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from xml.etree.ElementTree import fromstring
from xml.sax.saxutils import escape

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st
from shoal_guard.handlers import cleanup
from shoal_local_aws.faults.kinds import GuardDutyAgent, LateUpload

from common import names

PLENTY = 900_000


pytestmark = pytest.mark.usefixtures("aws")


class CloudFormation:
    """Fake CloudFormation that sends requests to the function, and keeps the answers."""

    def __init__(self):
        self.answers = []
        self.address = ""

    def ask(self, kind, properties, *, held=None, milliseconds_left=PLENTY):
        """`held` is the physical id of a resource that was created before."""
        event = {
            "RequestType": kind,
            "ResponseURL": self.address,
            "StackId": "the stack",
            "RequestId": "the request",
            "LogicalResourceId": "CleanupRawBucket",
            "ResourceProperties": {"ServiceToken": "x", **properties},
            **({"PhysicalResourceId": held} if held else {}),
        }
        cleanup.handler(event, SimpleNamespace(get_remaining_time_in_millis=lambda: milliseconds_left))
        return self.answers.pop()

    def delete(self, **properties):
        """Send the request to delete a resource, which must succeed."""
        assert self.ask("Delete", properties)["Status"] == "SUCCESS"


@pytest.fixture
def cloudformation():
    stand_in = CloudFormation()

    class Receiver(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stand_in.answers.append({**body, "content type": self.headers["Content-Type"]})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stand_in.address = f"http://127.0.0.1:{server.server_port}/"
        yield stand_in
        server.shutdown()


@contextmanager
def event_of(name, handle):
    """Let clients that are made in this block call a function at an event."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boto3, "DEFAULT_SESSION", session := boto3.Session())
        session.events.register(name, handle)
        yield


def filled_bucket(name):
    """Create a bucket with several objects, older versions, a deletion, and an unfinished upload."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=name)
    for number in range(7):
        s3.put_object(Bucket=name, Key=f"part-{number:05d}", Body=b"first")
    s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=name, Key="part-00000", Body=b"second")
    s3.delete_object(Bucket=name, Key="part-00001")
    upload = s3.create_multipart_upload(Bucket=name, Key="unfinished")["UploadId"]
    s3.upload_part(Bucket=name, Key="unfinished", UploadId=upload, PartNumber=1, Body=b"half")
    return name


def tied_groups():
    """Create two security groups that refer to each other and to themselves, like those of EMR."""
    ec2 = boto3.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    first, second = (
        ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"] for name in ("one", "two")
    )
    tcp, icmp = (
        {"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535},
        {"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1},
    )
    for group, other in ((first, second), (second, first), (first, first)):
        rules = [{**ports, "UserIdGroupPairs": [{"GroupId": other}]} for ports in (tcp, icmp)]
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=rules)
    outwards = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": first}]}
    ec2.authorize_security_group_egress(GroupId=second, IpPermissions=[outwards])
    return [first, second]


def buckets():
    return {each["Name"] for each in boto3.client("s3").list_buckets()["Buckets"]}


def test_a_filled_bucket_is_deleted_with_all_that_it_holds_or_gets_during_the_deletion(cloudformation, aws):
    bucket = filled_bucket("filled")
    with pytest.raises(ClientError, match="BucketNotEmpty"):
        boto3.client("s3").delete_bucket(Bucket=bucket)
    short = "provide-client-params.s3.ListObjectVersions"  # each page has two versions
    late = aws.faults.during(LateUpload(times=3))
    with event_of(short, lambda params, **_: {**params, "MaxKeys": 2}), late:
        cloudformation.delete(Bucket=bucket)
    assert bucket not in buckets()


def test_a_run_written_during_the_deletion_keeps_the_bucket(cloudformation, aws):
    s3, _ = bucket_of_runs("written-run")
    with aws.faults.during(LateUpload(key="runs/two/model.pt")):
        cloudformation.delete(Bucket="written-run", **RUNS)
    assert [each["Key"] for each in s3.list_objects_v2(Bucket="written-run")["Contents"]] == ["runs/two/model.pt"]


@pytest.mark.parametrize("held", ["object", "upload", "writer"])
def test_without_time_left_it_fails_and_says_how_to_continue(held, cloudformation, aws, messages):
    s3, bucket = boto3.client("s3"), f"endless-{held}"
    s3.create_bucket(Bucket=bucket)
    if held == "object":
        s3.put_object(Bucket=bucket, Key="left", Body=b"x")
    if held == "upload":
        s3.create_multipart_upload(Bucket=bucket, Key="half")
    with aws.faults.during(*([LateUpload(times=None)] if held == "writer" else [])):
        answer = cloudformation.ask("Delete", {"Bucket": bucket}, milliseconds_left=1000)
    assert answer["Status"] == "FAILED"
    messages.check(answer["Reason"])
    cloudformation.delete(Bucket=bucket)


RUNS = {"Runs": "runs/", "Fetched": "runs_fetched/"}


def bucket_of_runs(name):
    """Create a bucket with a completely fetched run; return its resource and the ETag of its model."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=name)
    s3.put_object(Bucket=name, Key="datasets/x", Body=b"x")
    s3.put_object(Bucket=name, Key="runs/", Body=b"")
    etag = s3.put_object(Bucket=name, Key="runs/one/model.pt", Body=b"weights")["ETag"]
    s3.put_object(Bucket=name, Key="runs_fetched/one.json", Body=json.dumps({"model.pt": etag, "gone": etag}).encode())
    return s3, etag


@pytest.mark.parametrize(
    ("name", "key", "body"),
    [
        ("fetched", "", b""),
        ("went-on", "runs/one/model.pt", b"better"),
        ("checkpoint", "runs/one/checkpoints/step-000000001.pt", b"x"),
        ("another-run", "runs/two/record.jsonl", b"x"),
        ("no-folder", "runs/two", b"x"),
        ("no-json", "runs_fetched/one.json", b"{"),
        ("a-list", "runs_fetched/one.json", b"[]"),
        ("no-etag", "runs_fetched/one.json", b'{"model.pt": []}'),
    ],
)
def test_a_bucket_keeps_everything_if_one_run_was_not_fetched_unchanged(name, key, body, cloudformation):
    s3, _ = bucket_of_runs(name)
    if key:
        s3.put_object(Bucket=name, Key=key, Body=body)
    before = s3.list_objects_v2(Bucket=name)["KeyCount"]
    for _ in range(2):
        cloudformation.delete(Bucket=name, **RUNS)
    assert (name in buckets()) is bool(key)
    assert not key or s3.list_objects_v2(Bucket=name)["KeyCount"] == before


@pytest.mark.parametrize("operation", ["ListObjectsV2", "GetObject"])
def test_a_bucket_with_unreadable_runs_stays_but_the_stack_is_deleted(operation, cloudformation):
    bucket_of_runs(name := f"dark-{operation.lower()}")
    body = {"Error": {"Code": "AccessDenied", "Message": "no"}}
    with event_of(f"before-call.s3.{operation}", lambda **_: (AWSResponse("", 403, {}, None), body)):
        cloudformation.delete(Bucket=name, **RUNS)
    assert boto3.client("s3").list_objects_v2(Bucket=name)["KeyCount"] == 4


def test_an_interrupted_deletion_leaves_no_fetched_run_without_its_record():
    assert sorted([names.FETCHED, names.RUNS]) == [names.RUNS, names.FETCHED]


def test_without_time_left_the_cleanup_of_a_network_says_what_is_left(aws, messages):
    ec2, added = boto3.client("ec2"), [{"Name": "tag-key", "Values": [cleanup.GUARDDUTY]}]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    with aws.faults.during(GuardDutyAgent(seconds=0.3)):
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        (made,) = ec2.run_instances(ImageId="ami-1", MinCount=1, MaxCount=1, SubnetId=subnet)["Instances"]
        ec2.terminate_instances(InstanceIds=[made["InstanceId"]])
        (endpoint,) = ec2.describe_vpc_endpoints(Filters=added)["VpcEndpoints"]
        messages.hide(endpoint["VpcEndpointId"], "ENDPOINT")
        with messages.raises(cleanup.UnfinishedError):
            cleanup.clean({"Network": vpc}, lambda: 0)
        cleanup.clean({"Network": vpc}, lambda: PLENTY)
    assert ec2.describe_vpc_endpoints(Filters=added)["VpcEndpoints"] == []
    assert ec2.describe_security_groups(Filters=added)["SecurityGroups"] == []


@pytest.mark.parametrize("code", ["InvalidPermission.NotFound", "InvalidGroup.NotFound", "UnauthorizedOperation"])
def test_a_missing_rule_does_not_keep_the_others(code, cloudformation):
    """Refuse the revocation of a missing rule with the error of EC2, because the emulator accepts it."""
    ec2, groups = boto3.client("ec2"), tied_groups()
    refused = []

    def first_refused(model, params, **_):
        if refused or not model.name.startswith("RevokeSecurityGroup"):
            return None
        refused.append(params)
        body = {"Error": {"Code": code, "Message": "The specified rule does not exist in this security group."}}
        return AWSResponse("", 400, {}, None), body

    with event_of("before-call.ec2", first_refused):
        answer = cloudformation.ask("Delete", {"SecurityGroups": groups})
    left = [
        pair
        for group in ec2.describe_security_groups(GroupIds=groups)["SecurityGroups"]
        for rule in (*group["IpPermissions"], *group["IpPermissionsEgress"])
        for pair in rule["UserIdGroupPairs"]
    ]
    if code.endswith("NotFound"):
        assert answer["Status"] == "SUCCESS"
        assert len(left) == 1
    else:
        assert code in answer["Reason"]
    cloudformation.ask("Delete", {"SecurityGroups": groups})
    for group in groups:
        ec2.delete_security_group(GroupId=group)


def test_an_object_under_legal_hold_is_a_failure_that_names_it(cloudformation):
    s3, bucket = boto3.client("s3"), "locked"
    s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    versions = {key: s3.put_object(Bucket=bucket, Key=key, Body=b"x")["VersionId"] for key in ("a", "held", "z")}
    s3.put_object_legal_hold(Bucket=bucket, Key="held", LegalHold={"Status": "ON"})
    answer = cloudformation.ask("Delete", {"Bucket": bucket})
    assert answer["Status"] == "FAILED"
    assert "s3://locked/held" in answer["Reason"]
    assert [each["Key"] for each in s3.list_object_versions(Bucket=bucket)["Versions"]] == ["held"]
    s3.put_object_legal_hold(Bucket=bucket, Key="held", VersionId=versions["held"], LegalHold={"Status": "OFF"})
    cloudformation.delete(Bucket=bucket)


def test_names_that_are_invalid_in_xml_do_not_keep_a_bucket(cloudformation, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")  # botocore cannot parse the answer to the start of such an upload
    s3, bucket = boto3.client("s3"), "odd-in-a-stack"
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for key in ("nodes/\x01a", "nodes/b\uffff", "nodes/\r\n", "plain", "a + b%41&amp;<c>"):
        for _ in range(2):
            s3.put_object(Bucket=bucket, Key=key, Body=b"x")
        with suppress(ClientError):
            s3.create_multipart_upload(Bucket=bucket, Key=key)
    s3.delete_object(Bucket=bucket, Key="nodes/\x01a")
    assert cloudformation.ask("Delete", {"Bucket": bucket})["Reason"] == "Done."
    assert bucket not in buckets()


HOSTILE = (
    *(
        "tiny.\x1b[31mA\r\nB",
        "\x01",
        "\x7f",
        "\u202e",
        "\ufffe",
        "\uffff",
        "a\tb",
        "&amp;<c>",
        "%41+b",
        "'\"`$(x)",
        " ",
    ),
    *("", "..", ".", "x" * 1017, "\U0001f41f" * 254),
)
"""Names of runs that a node may choose. The key of their record of fetched files is unusual, or too long for S3."""


def test_runs_with_hostile_names_count_as_not_fetched_and_their_bucket_can_be_deleted(cloudformation):
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="hostile-runs")
    for name in HOSTILE:
        s3.put_object(Bucket="hostile-runs", Key=f"runs/{name}/x", Body=b"x")
    assert cleanup.unfetched(s3, "hostile-runs", *RUNS.values()) == sorted(HOSTILE)
    cloudformation.delete(Bucket="hostile-runs", **RUNS)
    assert "hostile-runs" in buckets()
    cloudformation.delete(Bucket="hostile-runs")
    assert "hostile-runs" not in buckets()


@given(st.lists(st.text(min_size=1, max_size=4)))
def test_every_object_is_in_one_batch_and_a_batch_of_several_is_proper_xml(keys):
    made = list(cleanup.batches({"Key": key} for key in keys))
    assert sorted(each["Key"] for batch in made for each in batch) == sorted(keys)
    for batch in made:
        if len(batch) > 1:
            fromstring("<all>" + "".join(escape(each["Key"]) for each in batch) + "</all>")


def test_existing_parameters_are_deleted(cloudformation):
    ssm = boto3.client("ssm")
    for name in ("/shoal/mine/guard", "/shoal/mine-too/guard"):
        ssm.put_parameter(Name=name, Value="{}", Type="String")
    properties = {"Parameters": ["/shoal/mine/extension", "/shoal/mine/guard"]}
    cloudformation.delete(**properties)
    assert [each["Name"] for each in ssm.describe_parameters()["Parameters"]] == ["/shoal/mine-too/guard"]


@pytest.mark.parametrize(
    "properties",
    [
        {"Bucket": "never-was"},
        {"SecurityGroups": ["sg-0a1b2c3d4e5f60718"]},
        {"Parameters": ["/never/was"]},
        {"Claim": {"Deployment": "mine", "Owner": "ada", "Topology": "demo"}},
    ],
)
def test_a_missing_resource_is_clean(cloudformation, properties):
    cloudformation.delete(**properties)


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_nothing_is_cleaned_before_the_deletion(cloudformation, kind):
    s3, bucket = boto3.client("s3"), f"in-use-{kind.lower()}"
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="kept", Body=b"x")
    assert cloudformation.ask(kind, {"Bucket": bucket})["Status"] == "SUCCESS"
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1


def claimed(owner, made_from):
    return {"Claim": {"Deployment": "mine", "Owner": owner, "Topology": made_from}}


@pytest.mark.parametrize(("owner", "made_from"), [("bob", "demo"), ("ada", "starter"), ("bob", "starter")])
def test_the_creator_claims_a_deployment_and_another_owner_or_topology_is_refused(
    owner, made_from, cloudformation, messages
):
    first = cloudformation.ask("Create", claimed("ada", "demo"))
    held = first["PhysicalResourceId"]
    assert first["Status"] == "SUCCESS"
    answer = cloudformation.ask("Update", claimed(owner, made_from), held=held)
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("FAILED", held)
    messages.check(answer["Reason"])
    again = cloudformation.ask("Update", claimed("ada", "demo"), held=held)  # also the rollback of the refused update
    assert (again["Status"], again["PhysicalResourceId"]) == ("SUCCESS", held)


def test_the_answer_names_the_request_and_has_the_content_type_that_was_signed(cloudformation):
    assert cloudformation.ask("Create", {}) == {
        "Status": "SUCCESS",
        "Reason": "Done.",
        "PhysicalResourceId": "CleanupRawBucket",
        "StackId": "the stack",
        "RequestId": "the request",
        "LogicalResourceId": "CleanupRawBucket",
        "content type": "",
    }


def test_jobs_of_the_deployment_are_stopped(cloudformation, monkeypatch):
    stopped = []
    monkeypatch.setattr(cleanup, "stop_jobs", lambda *given: stopped.append(given[:2]))
    cloudformation.delete(Jobs="shoal-demo", Tag="shoal:deployment")
    assert stopped == [("shoal-demo", "shoal:deployment")]


def test_a_bucket_that_the_stack_keeps_as_another_construct_keeps_its_objects(aws):
    s3 = boto3.client("s3")
    for bucket, tag in (("kept", ""), ("other", "team"), ("clean", "shoal:clean")):
        s3.create_bucket(Bucket=bucket)
        if tag:
            s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": tag, "Value": "true"}]})
        s3.put_object(Bucket=bucket, Key="recording", Body=b"one")
        cleanup.clean({"Bucket": bucket, "Tag": "shoal:clean"}, lambda: 10**6)
    cleanup.clean({"Bucket": "gone", "Tag": "shoal:clean"}, lambda: 10**6)
    assert buckets() & {"kept", "other", "clean"} == {"kept", "other"}
    assert s3.get_object(Bucket="kept", Key="recording")["Body"].read() == b"one"
