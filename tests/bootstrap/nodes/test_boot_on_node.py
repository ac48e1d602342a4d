"""First boot of a GPU node: the real script on an emulated node."""

import json
import re
from pathlib import Path

import boto3
import pytest

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "bootstrap" / "nodes" / "gpu" / "boot.sh"
BUCKET = "boot-data"
MISSING = f"s3://{BUCKET}/missing.zip"


@pytest.fixture
def boot(aws):
    """Function that boots a node with these variables and returns its id and console. The node runs until the test
    ends."""
    ec2, s3 = boto3.client("ec2"), boto3.client("s3")
    started = []

    def run(**environment):
        s3.create_bucket(Bucket=BUCKET)
        s3.upload_file(str(SCRIPT), BUCKET, "boot.sh")
        variables = {
            "DEPLOYMENT": "booted",
            "DATA_BUCKET": BUCKET,
            "SHARE_KIND": "none",
            "SHARE_ID": "",
            "RANKS": "1",
            **environment,
        }
        exports = [f"export {name}='{value}'" for name, value in variables.items()]
        fetch = f'aws s3 cp --quiet s3://{BUCKET}/boot.sh "$NODE_ROOT/tmp/boot.sh"'
        user_data = "\n".join(["#!/bin/bash", *exports, fetch, 'exec bash "$NODE_ROOT/tmp/boot.sh"'])
        made = ec2.run_instances(
            ImageId="ami-1", MinCount=1, MaxCount=1, UserData=user_data, IamInstanceProfile={"Name": "nodes"}
        )
        identifier = str(made["Instances"][0]["InstanceId"])
        started.append(identifier)

        def ended():
            printed = str(ec2.get_console_output(InstanceId=identifier).get("Output", ""))
            return printed if "user data ended with" in printed else None

        return identifier, until(ended)

    yield run
    ec2.terminate_instances(InstanceIds=started)


@pytest.fixture
def reports(aws):
    """States that the nodes of this test reported, by the names of their objects."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=BUCKET)

    def found():
        listed = s3.list_objects_v2(Bucket=BUCKET, Prefix="nodes/").get("Contents", [])
        keys = [each["Key"] for each in listed if each["Key"].endswith(".json")]
        bodies = {key: s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}
        return {Path(key).stem: json.loads(body) for key, body in bodies.items()}

    for name in found():
        s3.delete_object(Bucket=BUCKET, Key=f"nodes/{name}.json")
    return found


@pytest.mark.parametrize(
    ("variables", "printed"),
    [
        ({}, "404"),
        ({"SHARE_KIND": "efs", "SHARE_ID": "fs-nobodys"}, "fs-nobodys"),
        ({"SHARE_KIND": "nsf"}, "SHARE_KIND is 'nsf', but must be efs, nfs or none"),
    ],
)
def test_a_failure_is_reported_with_its_last_lines(variables, printed, boot, reports):
    identifier, console = boot(CODE_URL=MISSING, WHEELS_URL=MISSING, **variables)
    (found,) = (report for name, report in reports().items() if name == identifier)
    assert found["state"] == "failed"
    assert printed in found["log"]
    assert found["log"] in console
    assert re.search(r"user data ended with exit code [1-9]", console)


def test_a_node_that_cannot_read_its_id_reports_under_its_host_name(boot, reports):
    boot(EC2_INSTANCE_ID="", CODE_URL=MISSING, WHEELS_URL=MISSING)
    ((name, printed),) = reports().items()
    assert not name.startswith("i-")
    assert printed["log"].splitlines()[-1] == "ec2-metadata: this machine is not an EC2 instance"


def test_packages_come_from_the_repository_that_nodes_can_reach():
    (install,) = re.findall(r"dnf install --.*", SCRIPT.read_text().replace("\\\n", " "))
    assert "--disablerepo='*' --enablerepo=amazonlinux " in install
