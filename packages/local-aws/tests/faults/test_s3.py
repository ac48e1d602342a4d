import io
import random
from contextlib import contextmanager

import boto3
import pytest
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError, ResponseStreamingError
from shoal_local_aws.faults.kinds import CutConnection, S3Error, Throttled
from tests.local_aws.accounts import keys_of

BODY = random.Random(3).randbytes(1 << 20)


def client_of(aws, **retries):
    config = Config(retries=retries)
    return boto3.client("s3", endpoint_url=aws.endpoint, region_name="us-east-1", **keys_of(aws), config=config)


@pytest.fixture(scope="module")
def s3(aws, upload):
    """Client without retries. The object `pile/object` exists."""
    upload("pile", "object", BODY)
    return client_of(aws, total_max_attempts=1)


@pytest.fixture(scope="module")
def patient(aws, s3):
    return client_of(aws, mode="standard", total_max_attempts=12)


@contextmanager
def statuses(client):
    """Record the status of every response that botocore receives, before botocore decides on a retry."""
    seen = []

    def look(response=None, **_):
        if response is not None:
            seen.append(response[0].status_code)

    client.meta.events.register("needs-retry.s3", look)
    yield seen
    client.meta.events.unregister("needs-retry.s3", look)


def test_clients_retry_throttled_requests(aws, s3, patient):
    with aws.faults.during(Throttled(service="s3", share=0.4)):
        with statuses(s3) as seen:
            refused = 0
            for _ in range(60):
                try:
                    s3.head_object(Bucket="pile", Key="object")
                except ClientError:
                    refused += 1
        assert 10 < refused < 40
        assert seen.count(503) == refused
        with statuses(patient) as seen:
            for _ in range(15):
                assert patient.get_object(Bucket="pile", Key="object")["Body"].read() == BODY
        assert 503 in seen


def test_a_connection_breaks_in_the_middle_of_a_large_object(aws, s3, patient, tmp_path):
    with aws.faults.during(CutConnection(times=1)):
        body = s3.get_object(Bucket="pile", Key="object")["Body"]
        assert body.read(1 << 16) == BODY[: 1 << 16]
        with pytest.raises(ResponseStreamingError):
            body.read()
        assert s3.get_object(Bucket="pile", Key="object")["Body"].read() == BODY
    with aws.faults.during(CutConnection()):
        assert s3.get_object(Bucket="pile", Key="object", Range="bytes=5-104")["Body"].read() == BODY[5:105]
    with aws.faults.during(CutConnection(share=0.5)):
        patient.download_file("pile", "object", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == BODY


def test_clients_retry_a_failed_upload(aws, s3, patient):
    with aws.faults.during(S3Error(operation="PutObject", times=1)):
        with pytest.raises(ClientError, match="InternalError"):
            s3.put_object(Bucket="pile", Key="new", Body=b"x")
        assert s3.list_objects_v2(Bucket="pile", Prefix="new")["KeyCount"] == 0
    with aws.faults.during(S3Error(operation="PutObject", times=2)), statuses(patient) as seen:
        patient.put_object(Bucket="pile", Key="new", Body=b"x")
        assert seen == [500, 500, 200]


def test_parts_of_an_upload_fail_separately(aws, patient):
    body = BODY * 12
    config = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
    with aws.faults.during(S3Error(operation="UploadPart", times=2)), statuses(patient) as seen:
        patient.upload_fileobj(io.BytesIO(body), "pile", "large", Config=config)
        assert seen.count(500) == 2
    assert patient.get_object(Bucket="pile", Key="large")["Body"].read() == body


def test_a_key_may_have_1024_bytes_and_no_more(s3):
    s3.put_object(Bucket="pile", Key="é" * 512, Body=b"x")
    with pytest.raises(ClientError, match="KeyTooLongError"):
        s3.put_object(Bucket="pile", Key="é" * 512 + "x", Body=b"x")
