"""`EmulatedCluster` without an emulator."""

import json
import os
import time

import pytest
from shoal_local_aws.emr import cluster as cluster_module
from shoal_local_aws.emr.cluster import EmulatedCluster
from shoal_local_aws.nodes.machine import Machine
from shoal_local_aws.seams import identity


def step_of(*command, on_failure="CONTINUE"):
    return {
        "Id": f"s-{command[-1]}",
        "Config": {"Jar": "command-runner.jar", "Args": [*command]},
        "ActionOnFailure": on_failure,
        "Status": {"State": "PENDING", "Timeline": {}},
    }


ALL = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@pytest.fixture
def make(tmp_path):
    identity.roles["service"] = {"InlinePolicies": {"all": json.dumps(ALL)}}

    def cluster(**more):
        groups = dict.fromkeys(("EmrManagedMasterSecurityGroup", "EmrManagedSlaveSecurityGroup"), "")
        record = {"Id": "j-1", "Status": {"State": "WAITING", "Timeline": {}}, "ServiceRole": "service", "LogUri": ""}
        record |= {"BootstrapActions": [], "InstanceGroups": [], "AutoTerminate": False}
        record["Ec2InstanceAttributes"] = {**groups, "IamInstanceProfile": "nodes"}
        machine = Machine(root=tmp_path, environment={"PATH": os.environ["PATH"], "NODE_ROOT": str(tmp_path)})
        return EmulatedCluster(record=record, steps=[], machine=machine, attempt_faults=lambda: None, **more)

    return cluster


def test_an_idle_cluster_terminates(make):
    cluster = make(idle_seconds=0)
    cluster.start()
    cluster.wait_until_terminated()
    assert cluster.state == "TERMINATED"
    assert "auto-termination" in cluster.record["Status"]["StateChangeReason"]["Message"]


def test_a_transient_cluster_waits_for_its_first_step(make, monkeypatch):
    step = step_of("true")
    late = make(idle_seconds=None)
    late.record["AutoTerminate"] = True
    late.start()
    late.wait_until_ready()
    late.add([step])
    late.wait_until_terminated()
    assert step["Status"]["State"] == "COMPLETED"
    monkeypatch.setattr(cluster_module, "_FIRST_STEP_SECONDS", 0.1)
    never = make(idle_seconds=None)
    never.record["AutoTerminate"] = True
    never.start()
    never.wait_until_terminated()
    assert never.record["Status"]["StateChangeReason"]["Code"] == "ALL_STEPS_COMPLETED"


def test_a_cluster_is_not_idle_while_an_application_of_yarn_runs(make, tmp_path):
    application = tmp_path / "mnt" / "yarn" / "applications" / "application_1_1"
    application.parent.mkdir(parents=True)
    application.touch()
    cluster = make(idle_seconds=0)
    cluster.start()
    cluster.wait_until_ready()
    time.sleep(0.2)
    assert cluster.state == "WAITING"
    application.unlink()
    cluster.wait_until_terminated()


@pytest.mark.parametrize(("touched", "seconds", "end"), [(False, 1000, "CANCELLED"), (True, 2, "COMPLETED")])
def test_a_process_without_yarn_counts_as_work_only_while_it_touches_isbusy(touched, seconds, end, make, tmp_path):
    if touched:
        busy = tmp_path / "emr" / "metricscollector" / "isbusy"
        busy.parent.mkdir(parents=True)
        busy.touch()
        os.utime(busy, (time.time() + 3600,) * 2)
    step = step_of("sleep", str(seconds))
    cluster = make(idle_seconds=1)
    cluster.add([step])
    cluster.start()
    cluster.wait_until_terminated()
    assert step["Status"]["State"] == end
    assert "auto-termination" in cluster.record["Status"]["StateChangeReason"]["Message"]
