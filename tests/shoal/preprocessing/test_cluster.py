import os
import subprocess
from dataclasses import replace

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

from bootstrap.node.documents import Cancellation
from common import names
from common.errors import ShoalError
from common.progress import ProgressReporter, reporting
from shoal.preprocessing import cancelling as cancellations
from shoal.preprocessing.cancelling import cancelling
from shoal.preprocessing.cluster import EmrCluster
from tests.jobs.piles import plan_in
from tests.shoal.preprocessing.emr_clusters import deployment, deployment_of, make_buckets
from tests.waiting import until

MINE = Cancellation(run="0123456789ab", token="0a1b2c3d")
THEIRS = Cancellation(run="ba9876543210", token="0a1b2c3d")
OWN, OTHER = (f"shoal {each.run}: " for each in (MINE, THEIRS))


@pytest.fixture(scope="module")
def session(aws):
    make_buckets().put_object(Bucket="data", Key="in/lines", Body=b"a line\n")
    return boto3.Session()


def step(name, *command):
    jar = {"Jar": "command-runner.jar", "Args": command}
    return {"Name": name, "ActionOnFailure": "CANCEL_AND_WAIT", "HadoopJarStep": jar}


def sleeping(name):
    """A step that runs for a minute."""
    return step(name, "sleep", "60")


def streaming(name, launch):
    """A step that submits an endless job to YARN."""
    places = ("-input", "s3://data/in/", "-output", f"s3://data/out/{launch.run}")
    job = ("-D", f"mapreduce.job.name={name}", "-D", "mapreduce.job.reduces=0", "-mapper", "sleep 1000", *places)
    return step(name, "shoal-step", "data", launch.run, launch.token, "hadoop-streaming", *job)


class Cluster(EmrCluster):
    """Cluster of one node, with access to its logs and YARN."""

    def __init__(self, aws):
        super().__init__(deployment())
        self._root = aws.folder / "clusters" / self.id

    def state(self, step):
        return str(self._emr.describe_step(ClusterId=self.id, StepId=step)["Step"]["Status"]["State"])

    def error(self, step):
        """Return the standard error of a step so far."""
        log = self._root / "mnt" / "var" / "log" / "hadoop" / "steps" / step / "stderr"
        return log.read_text() if log.exists() else ""

    def yarn(self, *arguments):
        """Return the output of `yarn`."""
        command = [self._root / "usr" / "local" / "bin" / "yarn", *arguments]
        environment = {**os.environ, "NODE_ROOT": str(self._root)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("groups", "vcpus"),
    [
        ([("MASTER", "m5.2xlarge", 1)], 8),
        ([("MASTER", "m5.2xlarge", 1), ("CORE", "m5.xlarge", 2)], 8),
        ([("MASTER", "m5.2xlarge", 1), ("CORE", "m5.xlarge", 2), ("TASK", "m5.2xlarge", 3)], 32),
    ],
)
def test_core_and_task_nodes_work_or_else_the_primary_node(session, groups, vcpus):
    assert EmrCluster(deployment(*groups)).workers().vcpus == vcpus


def test_a_cluster_that_has_ended_is_reported_with_the_command_for_a_new_one(session, messages):
    ended = deployment()
    name = ended.output(names.OUTPUT_CLUSTER_ID)
    session.client("emr").terminate_job_flows(JobFlowIds=[name])
    with pytest.raises(ShoalError, match=f"the cluster {name} "):
        EmrCluster(ended)
    with messages.raises(ShoalError):
        EmrCluster(deployment_of("j-FORGOTTEN"))


def test_active_steps_are_found_by_the_prefix_of_their_names(session):
    there = EmrCluster(deployment())
    names = (f"{OWN}encode", f"{OWN}merge", f"{OTHER}merge", "end cancelled jobs")
    ids = [there.submit(sleeping(name)) for name in names]
    assert there.active_steps(OWN) == {"encode": ids[0], "merge": ids[1]}


def test_steps_continue_if_aws_does_not_answer(session):
    there = EmrCluster(deployment())
    step = there.submit(sleeping(f"{OWN}merge"))
    with pytest.raises(EndpointConnectionError), cancelling(there, step, MINE):
        raise EndpointConnectionError(endpoint_url="nowhere")
    assert there.active_steps(OWN) == {"merge": step}


@pytest.mark.soak
def test_a_cancelled_step_ends_its_job_on_yarn_but_no_job_of_another_run(session, aws):
    there, s3 = Cluster(aws), session.client("s3")
    own = there.submit(streaming(f"{OWN}encode", MINE))
    other = there.submit(streaming(f"{OTHER}encode", THEIRS))
    s3.put_object(Bucket="data", Key=MINE.key, Body=b'{"version": 2, "run": "$(reboot)", "token": ""}')
    until(lambda: "run is '$(reboot)', but must be 12 hexadecimal digits" in there.error(own))
    assert (there.state(own), OWN in there.yarn("application", "-list")) == ("RUNNING", True)
    with pytest.raises(KeyboardInterrupt), cancelling(there, own, MINE):
        raise KeyboardInterrupt
    assert there.state(own) == "CANCELLED"
    answer = s3.get_object(Bucket="data", Key=MINE.answer_key)["Body"].read().decode()
    assert Cancellation.from_json(answer) == MINE
    assert OWN not in there.yarn("application", "-list")
    assert s3.list_objects_v2(Bucket="data", Prefix="requests/")["KeyCount"] == 0
    until(lambda: OTHER in there.yarn("application", "-list"))
    session.client("emr").cancel_steps(ClusterId=there.id, StepIds=[other])  # cancelled by hand
    until(lambda: there.state(other) == "CANCELLED")
    assert there.yarn("application", "-list") == ""


@pytest.mark.parametrize("written", [pytest.param(None, id="no answer"), pytest.param(b"{}", id="invalid answer")])
def test_a_step_that_does_not_answer_is_cancelled_and_reported(session, monkeypatch, written, messages):
    monkeypatch.setattr(cancellations, "_ANSWER_SECONDS", 1)
    there, launch = EmrCluster(deployment()), replace(MINE, token="00000002")
    own = there.submit(sleeping(f"{OWN}encode"))
    if written:
        session.client("s3").put_object(Bucket="data", Key=launch.answer_key, Body=written)
    until(lambda: there.is_unfinished(own, "RUNNING"))
    messages.hide(there.id, "CLUSTER")
    with messages.raises(ShoalError), cancelling(there, own, launch):
        raise KeyboardInterrupt
    assert there.active_steps(OWN) == {}


def test_pending_steps_are_cancelled_at_once(session):
    there = EmrCluster(deployment())
    running, waiting = (there.submit(sleeping(f"{name}encode")) for name in (OTHER, OWN))
    until(lambda: there.is_unfinished(running, "RUNNING"))
    with pytest.raises(KeyboardInterrupt), cancelling(there, waiting, MINE):
        raise KeyboardInterrupt
    assert list(there.active_steps("shoal ")) == [f"{THEIRS.run}: encode"]


class Shown(ProgressReporter):
    """Reporter that records the stages and the latest figures."""

    def __init__(self):
        self.stages = []
        self.figures = {}

    def stage(self, name, total=0, unit=None):
        self.stages.append((name, total))

    def say(self, **figures):
        self.figures = figures


def test_stages_are_shown_with_the_cost_and_a_failure_with_the_place_of_its_log(session, messages):
    there, shown, plan = EmrCluster(deployment()), Shown(), plan_in(f"s3://data/work/{MINE.run}")
    failing = (
        f"for name in texts/part-0000.bin choice.json; do sleep 2; echo | aws s3 cp --only-show-errors - {plan.work}/"
        "$name; done; sleep 3; exit 3"
    )
    failed = there.submit(step(f"{OWN}preprocess", "bash", "-c", failing))
    messages.hide(there.id, "CLUSTER")
    messages.hide(failed, "STEP")
    with reporting(shown), messages.raises(ShoalError):
        there.follow(failed, plan)
    assert shown.stages == [("read reviews", 0), ("deduplicate", 0), ("encode and merge", 0)]
    assert shown.figures["cost so far"].startswith("$")
