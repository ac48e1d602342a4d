"""First boot of a GPU node: the real script on an emulated node."""

import json
import re
from pathlib import Path

import boto3
import pytest

from tests.waiting import until

SCRIPT = Path(__file__).resolve().parents[3] / "bootstrap" / "nodes" / "gpu" / "boot.sh"
BUCKET = "boot-data"
MISSING = f"s3://{BUCKET}/missing.zip"


@pytest.mark.parametrize("share", ["none", "efs"])
def test_a_failure_is_reported_with_its_last_lines(share, aws):
    ec2, s3 = boto3.client("ec2"), boto3.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    variables = {"DATA_BUCKET": BUCKET, "SHARE_KIND": share, "SHARE_ID": "fs-nobodys"}
    variables |= {"RANKS": "1", "DEPLOYMENT": "booted", "CODE_URL": MISSING, "WHEELS_URL": MISSING}
    exports = (f"export {name}={value}" for name, value in variables.items())
    script = "\n".join(["#!/bin/bash", *exports, SCRIPT.read_text()])
    asked = {"ImageId": "ami-1", "MinCount": 1, "MaxCount": 1, "IamInstanceProfile": {"Name": "nodes"}}
    instance = ec2.run_instances(UserData=script, **asked)["Instances"][0]["InstanceId"]

    def console():
        printed = str(ec2.get_console_output(InstanceId=instance).get("Output", ""))
        return printed if "user data ended with" in printed else None

    printed = until(console)
    ec2.terminate_instances(InstanceIds=[instance])
    report = json.loads(s3.get_object(Bucket=BUCKET, Key=f"nodes/{instance}.json")["Body"].read())
    assert report["state"] == "failed"
    assert {"none": "404", "efs": "fs-nobodys"}[share] in report["log"]
    assert report["log"] in printed
    assert re.search(r"user data ended with exit code [1-9]", printed)


def test_packages_come_from_the_repository_that_nodes_can_reach():
    (install,) = re.findall(r"dnf install --.*", SCRIPT.read_text().replace("\\\n", " "))
    assert "--disablerepo='*' --enablerepo=amazonlinux " in install
