import gzip
import shlex
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from tests.local_aws.resources import ROLES
from tests.local_aws.waiting import until

LOGS = "emr-logs"
PRIMARY = {"InstanceRole": "MASTER", "InstanceType": "m5.xlarge", "InstanceCount": 1}


class Cluster:
    """Cluster with only a primary node."""

    def __init__(self, client, **more):
        self.emr, self.s3 = client("emr"), client("s3")
        instances = {
            "KeepJobFlowAliveWhenNoSteps": more.pop("keep", True),
            "TerminationProtected": more.pop("protected", False),
            "InstanceGroups": [PRIMARY],
            **more.pop("place", {}),
        }
        self.s3.create_bucket(Bucket=LOGS)
        self.id = self.emr.run_job_flow(
            Name="tests", Instances=instances, **{"LogUri": f"s3://{LOGS}/logs/", **ROLES, **more}
        )["JobFlowId"]

    def step(self, *arguments, on_failure="CONTINUE", jar="command-runner.jar"):
        command = {"Jar": jar, "Args": list(arguments)}
        step = {"Name": arguments[0], "ActionOnFailure": on_failure, "HadoopJarStep": command}
        return str(self.emr.add_job_flow_steps(JobFlowId=self.id, Steps=[step])["StepIds"][0])

    def shell(self, script, **more):
        return self.step("bash", "-c", script, **more)

    def status(self, step):
        return dict(self.emr.describe_step(ClusterId=self.id, StepId=step)["Step"]["Status"])

    def settled(self, step):
        ends = ("COMPLETED", "FAILED", "CANCELLED")
        return dict(until(lambda: (s := self.status(step))["State"] in ends and s))

    def state(self):
        return str(self.cluster()["Status"]["State"])

    def cluster(self):
        return dict(self.emr.describe_cluster(ClusterId=self.id)["Cluster"])

    def until(self, *states):
        until(lambda: self.state() in states)
        return self.cluster()

    def log(self, place):
        body = self.s3.get_object(Bucket=LOGS, Key=f"logs/{self.id}/{place}.gz")["Body"].read()
        return gzip.decompress(body).decode()


@pytest.fixture
def make(client):
    made = []

    def cluster(**more):
        made.append(Cluster(client, **more))
        return made[-1]

    yield cluster
    for cluster_made in made:
        cluster_made.emr.set_termination_protection(JobFlowIds=[cluster_made.id], TerminationProtected=False)
        cluster_made.emr.terminate_job_flows(JobFlowIds=[cluster_made.id])


STEPS = [
    ("bash -c 'echo out; echo err >&2; test -d $NODE_ROOT; echo 0 >>$NODE_ROOT/order'", "COMPLETED", "out\n", "err\n"),
    ("bash -c 'cat $NODE_ROOT/order; aws s3 ls s3://emr-data/ | cut -c 32-'", "COMPLETED", "0\nhere\n", ""),
    ('python3.11 -c \'import boto3; boto3.client("s3").head_bucket(Bucket="emr-data")\'', "COMPLETED", "", ""),
    ("bash -c 'echo no such bucket >&2; exit 7'", "FAILED", "", "no such bucket\n"),
    ("no-such-command", "FAILED", "", None),
]
"""Commands of steps, with the final state of the step and the output."""


def test_steps_really_run_in_their_order_and_their_output_is_in_the_log_bucket(make, upload):
    upload("emr-data", "here", "text")
    cluster = make()
    steps = [cluster.step(*shlex.split(command)) for command, *_ in STEPS]
    for step, (_, ends, out, error) in zip(steps, STEPS, strict=True):
        status = cluster.settled(step)
        assert status["State"] == ends, cluster.log(f"steps/{step}/stderr")
        for name, printed in (("stdout", out), ("stderr", error)):
            assert printed is None or cluster.log(f"steps/{step}/{name}") == printed
        if ends == "FAILED":
            assert status["FailureDetails"]["LogFile"] == f"s3://{LOGS}/logs/{cluster.id}/steps/{step}/stderr.gz"
    assert "exit code 7" in cluster.status(steps[3])["FailureDetails"]["Message"]
    assert "no-such-command: command not found" in cluster.log(f"steps/{steps[4]}/stderr")
    foreign = cluster.settled(cluster.step("main", jar="s3://jars/own.jar"))
    assert "supports command-runner.jar" in foreign["FailureDetails"]["Message"]
    assert cluster.until("WAITING")
    listed = cluster.emr.list_steps(ClusterId=cluster.id, StepStates=["COMPLETED"])["Steps"]
    assert [step["Id"] for step in listed] == steps[2::-1]  # the newest first
    answer = cluster.emr.cancel_steps(ClusterId=cluster.id, StepIds=steps[:1])["CancelStepsInfoList"][0]
    assert answer["Status"] == "FAILED"  # the step has already ended


def test_pending_steps_are_cancelled_and_running_steps_get_sigterm(make):
    cluster = make()
    running = cluster.shell("trap 'echo stopped; exit 0' TERM; echo started; sleep 1000 & wait")
    waiting = cluster.shell("true")
    answer = cluster.emr.cancel_steps(ClusterId=cluster.id, StepIds=[waiting])["CancelStepsInfoList"]
    assert [entry["Status"] for entry in answer] == ["SUBMITTED"]
    assert cluster.status(waiting)["State"] == "CANCELLED"
    until(lambda: cluster.status(running)["State"] == "RUNNING")
    cluster.emr.cancel_steps(ClusterId=cluster.id, StepIds=[running])
    assert cluster.settled(running)["State"] == "CANCELLED"
    assert cluster.state() in ("WAITING", "RUNNING")


@pytest.mark.parametrize(
    ("script", "said"), [("echo no disk >&2; exit 3", "bootstrap action 1"), (None, "s3://emr-scripts/missing.sh")]
)
def test_a_failed_bootstrap_action_terminates_the_cluster_with_its_reason(script, said, make, upload):
    path = upload("emr-scripts", "fails.sh", script) if script else said
    cluster = make(BootstrapActions=[{"Name": "fails", "ScriptBootstrapAction": {"Path": path}}])
    reason = cluster.until("TERMINATED_WITH_ERRORS")["Status"]["StateChangeReason"]
    assert (reason["Code"], said in reason["Message"]) == ("BOOTSTRAP_FAILURE", True)
    if script:
        assert cluster.log(f"node/{cluster.id}/bootstrap-actions/1/stderr") == "no disk\n"


def test_requests_that_emr_would_refuse_are_refused(make, messages):
    cluster = make(protected=True)
    with pytest.raises(ClientError, match="termination protected"):
        cluster.emr.terminate_job_flows(JobFlowIds=[cluster.id])
    with messages.raises(ClientError):
        cluster.emr.add_job_flow_steps(JobFlowId="j-UNKNOWN", Steps=[])
    with messages.raises(ClientError):
        cluster.emr.terminate_job_flows(JobFlowIds=["j-UNKNOWN"])


def test_action_on_failure_decides_about_later_steps(make):
    cluster = make()
    first = cluster.shell("sleep 0.3; exit 1", on_failure="CONTINUE")
    second = cluster.shell("sleep 0.3; exit 1", on_failure="CANCEL_AND_WAIT")
    third = cluster.shell("true")
    assert [cluster.settled(step)["State"] for step in (first, second, third)] == ["FAILED", "FAILED", "CANCELLED"]
    assert cluster.settled(cluster.shell("true"))["State"] == "COMPLETED"


def test_bootstrap_actions_run_before_steps_and_leave_commands_on_the_path(make, upload):
    script = upload("emr-scripts", "install.sh", 'printf "#!/bin/sh\\necho $1" > $NODE_ROOT/usr/local/bin/greet\n'
                    "chmod +x $NODE_ROOT/usr/local/bin/greet; python3.11 -c 'print(1)'; aws --version")  # fmt: skip
    action = {"Name": "install", "ScriptBootstrapAction": {"Path": script, "Args": ["hello"]}}
    cluster = make(BootstrapActions=[action])
    cluster.settled(step := cluster.step("greet"))
    assert cluster.log(f"steps/{step}/stdout") == "hello\n"
    listed = cluster.emr.list_bootstrap_actions(ClusterId=cluster.id)["BootstrapActions"]
    assert listed == [{"Name": "install", "ScriptPath": script, "Args": ["hello"]}]


def test_termination_kills_running_processes(make, aws):
    cluster = make()
    step = cluster.shell("setsid sleep 1000 & echo $! > $NODE_ROOT/sleeper; wait")
    sleeper = aws.folder / "clusters" / cluster.id / "sleeper"
    process = Path("/proc") / until(lambda: sleeper.exists() and sleeper.read_text().strip())
    cluster.emr.terminate_job_flows(JobFlowIds=[cluster.id])
    status = cluster.until("TERMINATED")["Status"]
    assert status["StateChangeReason"]["Code"] == "USER_REQUEST"
    assert cluster.settled(step)["State"] == "CANCELLED"
    until(lambda: not process.exists())
    with pytest.raises(ClientError, match="terminated"):
        cluster.shell("true")


def test_a_transient_cluster_terminates_after_its_steps_even_if_its_logs_are_lost(make):
    arguments = {"Jar": "command-runner.jar", "Args": ["true"]}
    step = {"Name": "only", "ActionOnFailure": "CONTINUE", "HadoopJarStep": arguments}
    cluster = make(keep=False, LogUri="s3://no-such-bucket/", Steps=[step])
    assert cluster.until("TERMINATED")["Status"]["StateChangeReason"]["Code"] == "ALL_STEPS_COMPLETED"
    states = [step["Status"]["State"] for step in cluster.emr.list_steps(ClusterId=cluster.id)["Steps"]]
    assert states == ["COMPLETED"]


def test_a_failed_streaming_job_leaves_task_logs_and_no_output(make, upload, client):
    upload("emr-data", "input/one.txt", "b a b\n")
    cluster = make()
    step = cluster.step(
        *["hadoop-streaming", "-D", "mapreduce.job.maps=1"],
        *["-mapper", "bash -c 'echo bad line >&2; exit 4'", "-reducer", "cat"],
        *["-input", "s3://emr-data/input/one.txt", "-output", "s3://emr-data/nothing"],
    )
    assert cluster.settled(step)["State"] == "FAILED"
    said = cluster.log(f"steps/{step}/stderr")
    assert "subprocess failed with code 4" in said
    assert "bad line" not in said
    assert said.splitlines()[-1] == "Streaming Command Failed!"
    kept = client("s3").list_objects_v2(Bucket=LOGS, Prefix=f"logs/{cluster.id}/containers/")["Contents"]
    logs = [entry["Key"].removeprefix(f"logs/{cluster.id}/") for entry in kept if "_m_000000_" in entry["Key"]]
    assert [cluster.log(key.removesuffix(".gz")) for key in logs] == ["bad line\n"] * 4
    assert client("s3").list_objects_v2(Bucket="emr-data", Prefix="nothing/")["KeyCount"] == 0


def test_a_cluster_needs_an_existing_subnet_with_the_tag_of_its_policies(make, client, messages):
    ec2, tag = client("ec2"), {"Key": "for-use-with-amazon-emr-managed-policies", "Value": "true"}
    vpc = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.8.0.0/24")["Subnet"]["SubnetId"]
    for place in ("subnet-0badbadbad", subnet):
        cluster = make(place={"Ec2SubnetId": place}, Tags=[tag]).until("TERMINATED_WITH_ERRORS")
        messages.check(cluster["Status"]["StateChangeReason"]["Message"])
    ec2.create_tags(Resources=[subnet], Tags=[tag])
    make(place={"Ec2SubnetId": subnet}, Tags=[tag]).until("WAITING")
