"""Clusters of the emulated EMR with nodes that run the code of this checkout."""

import sys
from pathlib import Path
from typing import Any

import boto3

from common import names
from shoal.aws.deployment import Deployment

ROOT = Path(__file__).parents[3]
BUCKETS = {names.OUTPUT_RAW_BUCKET: "raw", names.OUTPUT_DATA_BUCKET: "data", names.OUTPUT_LOG_BUCKET: "log"}
PRIMARY = ("MASTER", "m5.xlarge", 1)
BOOT = f"""\
cat > $NODE_ROOT/usr/local/bin/shoal-python <<'RUN'
#!/bin/bash
PYTHONPATH={ROOT} exec {sys.executable} "$@"
RUN
cat > $NODE_ROOT/usr/local/bin/shoal-step <<'RUN'
#!/bin/bash
PYTHONPATH={ROOT} exec {sys.executable} -P -m bootstrap.node.step "$@"
RUN
cp {ROOT}/bootstrap/emr/preprocess.sh $NODE_ROOT/usr/local/bin/shoal-preprocess
chmod +x $NODE_ROOT/usr/local/bin/shoal-*
"""


def make_buckets() -> Any:
    """S3 client, with the buckets of a deployment and the bootstrap script of nodes."""
    s3 = boto3.client("s3")
    for bucket in BUCKETS.values():
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket="data", Key="boot/boot.sh", Body=BOOT.encode())
    return s3


def deployment_of(cluster: str) -> Deployment:
    outputs = {names.OUTPUT_CLUSTER_ID: cluster, **BUCKETS}
    return Deployment(name="mine", topology="starter", session=boto3.Session(), outputs=outputs)


def deployment(*groups: tuple[str, str, int]) -> Deployment:
    """Deployment with a cluster of these groups: role, type, count."""
    names = ("InstanceRole", "InstanceType", "InstanceCount")
    instances: Any = [dict(zip(names, group, strict=True)) for group in groups or (PRIMARY,)]
    made = boto3.client("emr").run_job_flow(
        Name="mine",
        ReleaseLabel="emr-7.13.0",
        LogUri="s3://log/emr/",
        ServiceRole="service",
        JobFlowRole="nodes",
        Instances={"InstanceGroups": instances, "KeepJobFlowAliveWhenNoSteps": True},
        BootstrapActions=[{"Name": "boot", "ScriptBootstrapAction": {"Path": "s3://data/boot/boot.sh"}}],
    )
    return deployment_of(made["JobFlowId"])
