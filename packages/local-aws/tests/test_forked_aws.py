"""Emulators that tests fork from one process share nothing."""

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from shoal_local_aws.aws import REGION, EmbeddedAws
from shoal_local_aws.processes import marked_processes
from shoal_local_aws.watchdog import MARK
from tests.local_aws.accounts import keys_of
from tests.local_aws.forked_aws import ForkedAws
from tests.local_aws.waiting import until


def client(aws: EmbeddedAws, service: str, keys: EmbeddedAws) -> Any:
    return boto3.Session(**keys_of(keys), region_name=REGION).client(service, endpoint_url=aws.endpoint)


def test_forked_emulators_have_their_own_state_and_keys_and_take_their_nodes_along(tmp_path: Path) -> None:
    with ForkedAws(tmp_path / "one") as one, ForkedAws(tmp_path / "two") as two:
        for aws, name in ((one, "first"), (two, "second")):
            client(aws, "s3", aws).create_bucket(Bucket=name)
            names = [bucket["Name"] for bucket in client(aws, "s3", aws).list_buckets()["Buckets"]]
            assert names == [name]
        with pytest.raises(ClientError):
            client(two, "s3", one).list_buckets()
        script = "touch $NODE_ROOT/awake; sleep 1000"
        client(one, "ec2", one).run_instances(ImageId="ami-1", MinCount=1, MaxCount=1, UserData=script)
        until(lambda: list(one.folder.glob("nodes/*/awake")))
        assert marked_processes(MARK, str(one.folder))
    assert marked_processes(MARK, str(one.folder)) == []
    with ForkedAws(tmp_path / "one") as again:
        assert client(again, "s3", again).list_buckets()["Buckets"] == []
