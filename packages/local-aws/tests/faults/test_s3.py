import random

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ResponseStreamingError
from shoal_local_aws.faults.kinds import CutConnection
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


def test_a_key_may_have_1024_bytes_and_no_more(s3):
    s3.put_object(Bucket="pile", Key="é" * 512, Body=b"x")
    with pytest.raises(ClientError, match="KeyTooLongError"):
        s3.put_object(Bucket="pile", Key="é" * 512 + "x", Body=b"x")
