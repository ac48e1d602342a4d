"""Preprocessing on a deployment's EMR cluster: submit the jobs as steps, watch them, say what they made.

The easy mistake is to write a second pipeline for the cluster. The steps are those of `jobs.steps`; here they
only become arguments of Hadoop Streaming.
"""

import gzip
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from botocore.exceptions import ClientError

from bootstrap import objects
from bootstrap.deployment import Deployment
from bootstrap.errors import ShoalError
from bootstrap.objects import Place
from bootstrap.progress import Bars
from corpus.dataset import Settings
from corpus.errors import DataError
from corpus.text import load_stopwords
from infra import catalog, topology
from jobs.merge import Merged, read_merged
from jobs.pipeline import input_files
from jobs.steps import CommandStep, JobStep, Plan
from jobs.storage import is_s3
from jobs.task import FAILURE_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_emr.client import EMRClient
    from mypy_boto3_emr.type_defs import DescribeStepOutputTypeDef, StepConfigTypeDef

RAW_PREFIX = "reviews/"
DATASETS_PREFIX = "datasets"
_WORK_PREFIX = "work/"

_ALIVE = ("STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING")
_ENDED_BADLY = ("FAILED", "CANCELLED", "INTERRUPTED")
# EMR puts a step's logs into the bucket some time after the step ended.
_LOG_PATIENCE_SECONDS = 20
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0


def preprocess(
    deployment: Deployment, inputs: Sequence[str], *, settings: Settings, max_malformed: float, bars: Bars
) -> Merged:
    """Turn raw reviews into a dataset in the deployment's data bucket, in a folder named by its digest.

    `inputs` are files and folders here, which are uploaded to the raw bucket first, and s3:// addresses. Raises
    DataError for input that the jobs refuse, and ShoalError when the cluster cannot do the work.
    """
    s3 = deployment.session.client("s3")
    emr = deployment.session.client("emr")
    cluster = deployment.output(topology.OUTPUT_CLUSTER_ID)
    reducers = _reducers(emr, cluster)
    addresses, input_bytes = _bring(deployment, inputs, bars)
    work = Place(deployment.output(topology.OUTPUT_DATA_BUCKET), f"{_WORK_PREFIX}{uuid4().hex[:12]}/")
    try:
        plan = Plan(
            inputs=tuple(addresses),
            work=str(work).rstrip("/"),
            output=str(Place(work.bucket, DATASETS_PREFIX)),
            settings=_with_stopwords_there(deployment, settings, work),
            max_malformed=max_malformed,
            input_bytes=input_bytes,
        )
        steps = plan.steps()
        bars.stage("submit", len(steps))
        ids = emr.add_job_flow_steps(JobFlowId=cluster, Steps=[_configured(step, reducers) for step in steps])[
            "StepIds"
        ]
        try:
            for step, step_id in zip(steps, ids, strict=True):
                bars.stage(step.name, 0)
                _wait(deployment, cluster, step.name, step_id)
        except BaseException:
            _cancel(emr, cluster, ids)
            raise
        return read_merged(plan.summary)
    finally:
        objects.remove(s3, work)


def streaming_arguments(step: JobStep, reducers: int) -> list[str]:
    """The arguments of Hadoop Streaming for a job; `reducers` is the number of reduce tasks."""
    names = {option: f"{option.lstrip('-')}.txt" for option in step.files}
    files = ",".join(f"{step.files[option]}#{name}" for option, name in names.items())
    arguments = [*step.arguments, *(f"{option}={name}" for option, name in names.items())]

    def task(kind: str) -> str:
        return shlex.join(["shoal-python", "-m", step.module, "--step-num=0", f"--{kind}", *arguments])

    return [
        "hadoop-streaming",
        *("-D", f"mapreduce.job.name=shoal: {step.name}"),
        *("-D", f"mapreduce.job.reduces={reducers}"),
        # A line ends at \n alone; Hadoop's default also ends it at \r.
        *("-D", "textinputformat.record.delimiter=\n"),
        *(("-files", files) if files else ()),
        *("-mapper", task("mapper")),
        *("-reducer", task("reducer")),
        *(argument for address in step.inputs for argument in ("-input", address)),
        *("-output", step.output),
    ]


def _configured(step: JobStep | CommandStep, reducers: int) -> "StepConfigTypeDef":
    arguments = (
        streaming_arguments(step, reducers)
        if isinstance(step, JobStep)
        else ["shoal-python", "-m", step.module, *step.arguments]
    )
    return {
        "Name": step.name,
        "ActionOnFailure": "CANCEL_AND_WAIT",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": arguments},
    }


def _reducers(emr: "EMRClient", cluster: str) -> int:
    """As many reduce tasks as the core nodes have vCPUs. Raises ShoalError when the cluster is not there any more."""
    try:
        described = emr.describe_cluster(ClusterId=cluster)["Cluster"]
        state = described["Status"]["State"]
        groups = emr.list_instance_groups(ClusterId=cluster)["InstanceGroups"] if state in _ALIVE else []
    except ClientError as error:
        raise ShoalError(f"the cluster {cluster} cannot be described: {error}") from error
    if state not in _ALIVE:
        reason = described["Status"].get("StateChangeReason", {}).get("Message", "no reason given")
        raise ShoalError(f"the cluster {cluster} is {state} ({reason}); destroy the deployment and deploy it again")
    return sum(
        catalog.find(group["InstanceType"]).vcpu * group["RequestedInstanceCount"]
        for group in groups
        if group["InstanceGroupType"] == "CORE"
    )


def _bring(deployment: Deployment, inputs: Sequence[str], bars: Bars) -> tuple[list[str], int]:
    """The addresses of the raw files in S3, and their bytes; local ones are uploaded."""
    s3 = deployment.session.client("s3")
    addresses = [address for address in inputs if is_s3(address)]
    size = 0
    for address in addresses:
        found = objects.sizes(s3, objects.parse(address))
        if not sum(found.values()):
            raise DataError(f"there is nothing at {address}; check the address")
        size += sum(found.values())
    local = [Path(address) for address in inputs if not is_s3(address)]
    if local:
        files = input_files(local)
        raw = Place(deployment.output(topology.OUTPUT_RAW_BUCKET), RAW_PREFIX)
        addresses += objects.upload(s3, files, raw, bars)
        size += sum(path.stat().st_size for path in files)
    return addresses, size


def _with_stopwords_there(deployment: Deployment, settings: Settings, work: Place) -> Settings:
    """The settings, with a file of stopwords of one's own put where the tasks can fetch it."""
    load_stopwords(settings.stopwords)
    if settings.stopwords in ("nltk", "none"):
        return settings
    key = f"{work.key}stopwords.txt"
    deployment.session.client("s3").upload_file(settings.stopwords, work.bucket, key)
    return replace(settings, stopwords=str(Place(work.bucket, key)))


def _wait(deployment: Deployment, cluster: str, name: str, step_id: str) -> None:
    """Return when a step has completed. Raises what its failure means."""
    emr = deployment.session.client("emr")
    pause = _FIRST_PAUSE
    while True:
        step = emr.describe_step(ClusterId=cluster, StepId=step_id)
        state = step["Step"]["Status"]["State"]
        if state == "COMPLETED":
            return
        if state in _ENDED_BADLY:
            raise _failure(deployment, cluster, name, step)
        time.sleep(pause)
        pause = min(pause * 1.2, _LONGEST_PAUSE)


def _failure(deployment: Deployment, cluster: str, name: str, step: "DescribeStepOutputTypeDef") -> Exception:
    emr = deployment.session.client("emr")
    status = emr.describe_cluster(ClusterId=cluster)["Cluster"]["Status"]
    if status["State"] not in _ALIVE:
        reason = status.get("StateChangeReason", {}).get("Message", "no reason given")
        return ShoalError(f"the cluster {cluster} ended ({reason}); its log is in the deployment's log bucket")
    said = _last_words(deployment, cluster, step["Step"]["Id"])
    for line in said.splitlines():
        if line.startswith(FAILURE_PREFIX):
            return DataError(line.removeprefix(FAILURE_PREFIX))
    details = step["Step"]["Status"].get("FailureDetails", {})
    last = said.strip().splitlines()[-1:] or [details.get("Message") or details.get("Reason") or "no reason given"]
    return ShoalError(f"the step '{name}' ({step['Step']['Id']}) ended as {step['Step']['Status']['State']}: {last[0]}")


def _last_words(deployment: Deployment, cluster: str, step_id: str) -> str:
    """What a step left on its standard error, as far as the log bucket has it yet."""
    s3 = deployment.session.client("s3")
    place = Place(deployment.output(topology.OUTPUT_LOG_BUCKET), f"emr/{cluster}/steps/{step_id}/stderr.gz")
    deadline = time.monotonic() + _LOG_PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if objects.sizes(s3, place):
            return gzip.decompress(s3.get_object(Bucket=place.bucket, Key=place.key)["Body"].read()).decode(
                "utf-8", "replace"
            )
        time.sleep(2)
    return ""


def _cancel(emr: "EMRClient", cluster: str, ids: Sequence[str]) -> None:
    """End what is left of the steps; whoever waits for them is gone."""
    for step_id in ids:
        if emr.describe_step(ClusterId=cluster, StepId=step_id)["Step"]["Status"]["State"] in ("PENDING", "RUNNING"):
            emr.cancel_steps(ClusterId=cluster, StepIds=[step_id], StepCancellationOption="TERMINATE_PROCESS")
