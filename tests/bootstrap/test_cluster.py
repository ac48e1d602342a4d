from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from bootstrap.cluster import Cluster
from bootstrap.deployment import Deployment
from bootstrap.errors import ShoalError
from embedded.aws import EmbeddedAws
from infra import topology


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[boto3.Session]:
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield boto3.Session()


def deployment(session: boto3.Session, *groups: tuple[str, str, int]) -> Deployment:
    """One with a cluster of these groups: role, type, how many."""
    instances: Any = [
        {"InstanceRole": role, "InstanceType": kind, "InstanceCount": count} for role, kind, count in groups
    ]
    made = session.client("emr").run_job_flow(
        Name="mine",
        ReleaseLabel="emr-7.13.0",
        LogUri="s3://log/emr/",
        ServiceRole="service",
        JobFlowRole="node",
        Instances={"InstanceGroups": instances, "KeepJobFlowAliveWhenNoSteps": True},
    )
    outputs = {topology.OUTPUT_CLUSTER_ID: made["JobFlowId"], topology.OUTPUT_LOG_BUCKET: "log"}
    return Deployment(name="mine", topology="starter", session=session, outputs=outputs)


@pytest.mark.parametrize(
    ("groups", "vcpus"),
    [
        ([("MASTER", "m5.2xlarge", 1)], 8),
        ([("MASTER", "m5.2xlarge", 1), ("CORE", "m5.xlarge", 2)], 8),
        ([("MASTER", "m5.2xlarge", 1), ("CORE", "m5.xlarge", 2), ("TASK", "m5.2xlarge", 3)], 32),
    ],
)
def test_core_and_task_nodes_work_or_the_primary_one_alone(session, groups, vcpus) -> None:
    assert Cluster(deployment(session, *groups)).worker_vcpus() == vcpus


def test_a_cluster_that_has_ended_is_said_with_the_way_to_another(session) -> None:
    ended = deployment(session, ("MASTER", "m5.xlarge", 1))
    session.client("emr").terminate_job_flows(JobFlowIds=[ended.output(topology.OUTPUT_CLUSTER_ID)])
    with pytest.raises(
        ShoalError, match=r"\); `shoal deploy starter --deployment mine` brings a new one and leaves the"
    ):
        Cluster(ended)
