import gzip
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from bootstrap.aws.deployment import Deployment
from bootstrap.errors import ShoalError
from bootstrap.nodes.run_command import NodeCommand
from bootstrap.preprocessing.cluster import EmrCluster
from corpus.reading.s3 import Place
from embedded.aws import EmbeddedAws
from infra import topology

RUN = "0123456789ab"
OWN, OTHER = f"shoal {RUN}: ", "shoal ba9876543210: "


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[boto3.Session]:
    with EmbeddedAws(tmp_path_factory.mktemp("aws")) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield boto3.Session()


def deployment(session: boto3.Session, *groups: tuple[str, str, int], boot: str | None = None) -> Deployment:
    """One with a cluster of these groups: role, type, how many; its nodes boot by the script `boot`."""
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
        BootstrapActions=[{"Name": "boot", "ScriptBootstrapAction": {"Path": boot}}] if boot else [],
    )
    outputs = {topology.OUTPUT_CLUSTER_ID: made["JobFlowId"], topology.OUTPUT_LOG_BUCKET: "log"}
    return Deployment(name="mine", topology="starter", session=session, outputs=outputs)


def sleeping(name: str) -> Any:
    """A step that runs for a minute."""
    return {
        "Name": name,
        "ActionOnFailure": "CANCEL_AND_WAIT",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["sleep", "60"]},
    }


def primary_of(session: boto3.Session, there: EmrCluster) -> str:
    """The instance that is a cluster's primary node."""
    found = session.client("emr").list_instances(ClusterId=there.id, InstanceGroupTypes=["MASTER"])
    return str(found["Instances"][0]["Ec2InstanceId"])


@pytest.mark.parametrize(
    ("groups", "vcpus"),
    [
        ([("MASTER", "m5.2xlarge", 1)], 8),
        ([("MASTER", "m5.2xlarge", 1), ("CORE", "m5.xlarge", 2)], 8),
        ([("MASTER", "m5.2xlarge", 1), ("CORE", "m5.xlarge", 2), ("TASK", "m5.2xlarge", 3)], 32),
    ],
)
def test_core_and_task_nodes_work_or_else_the_primary_node(session, groups, vcpus) -> None:
    assert EmrCluster(deployment(session, *groups)).workers().vcpus == vcpus


def test_a_cluster_that_has_ended_is_reported_with_the_command_for_a_new_one(session) -> None:
    ended = deployment(session, ("MASTER", "m5.xlarge", 1))
    session.client("emr").terminate_job_flows(JobFlowIds=[ended.output(topology.OUTPUT_CLUSTER_ID)])
    with pytest.raises(
        ShoalError, match=r"\); `shoal deploy starter --deployment mine` creates a new one and does not"
    ):
        EmrCluster(ended)


def test_a_cluster_that_emr_has_forgotten_has_ended(session) -> None:
    outputs = {topology.OUTPUT_CLUSTER_ID: "j-FORGOTTEN", topology.OUTPUT_LOG_BUCKET: "log"}
    with pytest.raises(ShoalError, match=r"the cluster j-FORGOTTEN has ended \(state TERMINATED\); `shoal deploy"):
        EmrCluster(Deployment(name="mine", topology="starter", session=session, outputs=outputs))


def test_steps_that_wait_or_run_are_found_by_the_beginning_of_their_names(session) -> None:
    there = EmrCluster(deployment(session, ("MASTER", "m5.xlarge", 1)))
    names = (f"{OWN}encode", f"{OWN}merge", f"{OTHER}merge", "end cancelled jobs")
    ids = there.submit([sleeping(name) for name in names])
    assert there.active_steps(OWN) == {"encode": ids[0], "merge": ids[1]}
    with pytest.raises(KeyboardInterrupt), there.cancelling(ids, RUN):
        raise KeyboardInterrupt
    assert there.active_steps("shoal ") == {}


def test_steps_continue_when_aws_cannot_be_reached(session) -> None:
    there = EmrCluster(deployment(session, ("MASTER", "m5.xlarge", 1)))
    (step,) = there.submit([sleeping(f"{OWN}merge")])
    with pytest.raises(EndpointConnectionError), there.cancelling([step], RUN):
        raise EndpointConnectionError(endpoint_url="nowhere")
    assert there.active_steps(OWN) == {"merge": step}


YARN = f"""\
mkdir -p $NODE_ROOT/usr/local/bin
cat > $NODE_ROOT/usr/local/bin/yarn <<'RUN'
#!/bin/bash
case "$*" in
  "application -list") printf 'application_1 {OWN}encode MAPREDUCE\\napplication_2 {OTHER}encode MAPREDUCE\\n' ;;
  *) echo "$@" >>$NODE_ROOT/ended ;;
esac
RUN
chmod +x $NODE_ROOT/usr/local/bin/yarn
"""


def test_a_cancelled_job_ends_on_yarn_before_another_runs_steps_do(session) -> None:
    s3 = session.client("s3")
    s3.create_bucket(Bucket="boot")
    s3.put_object(Bucket="boot", Key="yarn.sh", Body=YARN.encode())
    mine = deployment(session, ("MASTER", "m5.xlarge", 1), ("CORE", "m5.xlarge", 1), boot="s3://boot/yarn.sh")
    there = EmrCluster(mine)
    own, other = there.submit([sleeping(f"{OWN}encode"), sleeping(f"{OTHER}encode")])
    emr = session.client("emr")

    def state(step: str) -> str:
        return str(emr.describe_step(ClusterId=there.id, StepId=step)["Step"]["Status"]["State"])

    while state(own) == "PENDING":
        time.sleep(0.1)
    with pytest.raises(KeyboardInterrupt), there.cancelling([own], RUN):
        raise KeyboardInterrupt
    assert state(own) == "CANCELLED"
    assert state(other) in ("PENDING", "RUNNING")
    said = NodeCommand(session, primary_of(session, there), "cat $NODE_ROOT/ended")
    said.wait()
    assert said.state().output == "application -kill application_1"


def test_steps_that_only_waited_leave_nothing_to_end_on_yarn(session) -> None:
    there = EmrCluster(deployment(session, ("MASTER", "m5.xlarge", 1)))
    _, waiting = there.submit([sleeping(f"{OTHER}encode"), sleeping(f"{OWN}encode")])
    with pytest.raises(KeyboardInterrupt), there.cancelling([waiting], RUN):
        raise KeyboardInterrupt
    assert list(there.active_steps("shoal ")) == ["ba9876543210: encode"]
    sent = session.client("ssm").list_command_invocations(InstanceId=primary_of(session, there))
    assert sent["CommandInvocations"] == []


@pytest.mark.parametrize("packed", [b"no gzip", gzip.compress(b"its last words" * 99)[:-9]], ids=["foreign", "cut off"])
def test_a_damaged_log_of_a_step_is_reported(session, packed: bytes) -> None:
    there = EmrCluster(deployment(session, ("MASTER", "m5.xlarge", 1)))
    session.client("s3").create_bucket(Bucket="log")
    session.client("s3").put_object(Bucket="log", Key="emr/damaged/stderr.gz", Body=packed)
    assert there._last_line(Place("log", "emr/damaged/")) == "its log is damaged"
