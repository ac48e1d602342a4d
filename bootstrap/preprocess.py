"""Preprocessing on a deployment's EMR cluster: bring the reviews, submit the jobs as steps, say what they made.

The easy mistake is to write a second pipeline for the cluster. The steps are those of `jobs.steps`; here they
only become arguments of Hadoop Streaming.
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from bootstrap import objects
from bootstrap.cluster import Cluster
from bootstrap.deployment import Deployment
from bootstrap.objects import Place
from bootstrap.progress import Bars
from corpus.errors import DataError
from corpus.settings import Settings
from corpus.text import load_stopwords
from infra import topology
from jobs.merge import Merged, read_merged
from jobs.pipeline import input_files
from jobs.steps import CommandStep, JobStep, Plan, plain_size
from jobs.storage import is_s3

if TYPE_CHECKING:
    from mypy_boto3_emr.type_defs import StepConfigTypeDef

RAW_PREFIX = "reviews/"

# A reduce task should have more to do than to start.
_REDUCER_BYTES = 32 << 20


def preprocess(
    deployment: Deployment, inputs: Sequence[str], *, settings: Settings, max_malformed: float, bars: Bars
) -> Merged:
    """Turn raw reviews into a dataset in the deployment's data bucket, in a folder named by its digest.

    `inputs` are files and folders here, which are uploaded to the raw bucket first, and s3:// addresses of the
    deployment's own buckets. Raises DataError for input that cannot be used, and ShoalError when the cluster cannot do
    the work.
    """
    cluster = Cluster(deployment)
    addresses, input_bytes = _bring(deployment, inputs, bars)
    reducers = min(cluster.worker_vcpus(), max(2, input_bytes // _REDUCER_BYTES))
    run = uuid4().hex[:12]
    work = Place(deployment.output(topology.OUTPUT_DATA_BUCKET), f"{topology.WORK_PREFIX}{run}/")
    failure = Place(work.bucket, f"{work.key}failure.txt")
    try:
        plan = Plan(
            inputs=tuple(addresses),
            work=str(work).rstrip("/"),
            output=str(Place(work.bucket, topology.DATASETS_PREFIX)).rstrip("/"),
            settings=_with_stopwords_there(deployment, settings, work),
            max_malformed=max_malformed,
            input_bytes=input_bytes,
        )
        steps = plan.steps()
        with cluster.submitted([_configured(step, reducers, run, failure) for step in steps], run) as ids:
            for step, step_id in zip(steps, ids, strict=True):
                bars.stage(step.name, 0)
                cluster.wait(step_id, failure, bars.tick)
        return read_merged(plan.summary)
    finally:
        objects.remove(deployment.session.client("s3"), work)


def streaming_arguments(step: JobStep, reducers: int, run: str) -> list[str]:
    """The arguments of Hadoop Streaming for a job; `reducers` is the number of reduce tasks, `run` names the work."""
    names = {option: f"{option.lstrip('-')}.txt" for option in step.files}
    files = ",".join(f"{step.files[option]}#{name}" for option, name in names.items())
    arguments = [*step.arguments, *(f"{option}={name}" for option, name in names.items())]

    def task(kind: str) -> str:
        return shlex.join(["shoal-python", "-m", step.module, "--step-num=0", f"--{kind}", *arguments])

    return [
        "hadoop-streaming",
        *("-D", f"mapreduce.job.name=shoal {run}: {step.name}"),
        *("-D", f"mapreduce.job.reduces={reducers}"),
        # A line ends at \n alone; Hadoop's default also ends it at \r.
        *("-D", "textinputformat.record.delimiter=\n"),
        *(("-files", files) if files else ()),
        *("-mapper", task("mapper")),
        *("-reducer", task("reducer")),
        *(argument for address in step.inputs for argument in ("-input", address)),
        *("-output", step.output),
    ]


def _configured(step: JobStep | CommandStep, reducers: int, run: str, failure: Place) -> "StepConfigTypeDef":
    arguments = (
        streaming_arguments(step, reducers, run)
        if isinstance(step, JobStep)
        else ["shoal-python", "-m", step.module, *step.arguments, f"--failure={failure}"]
    )
    return {
        "Name": step.name,
        "ActionOnFailure": "CANCEL_AND_WAIT",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": arguments},
    }


def _bring(deployment: Deployment, inputs: Sequence[str], bars: Bars) -> tuple[list[str], int]:
    """The addresses of the raw files in S3, and about how many bytes they hold; local ones are uploaded."""
    s3 = deployment.session.client("s3")
    raw = Place(deployment.output(topology.OUTPUT_RAW_BUCKET), RAW_PREFIX)
    addresses = [address for address in inputs if is_s3(address)]
    size = 0
    for address in addresses:
        place = deployment.own(address)
        folder = f"{place.key.rstrip('/')}/"
        found = {
            key: held for key, held in objects.sizes(s3, place).items() if key == place.key or key.startswith(folder)
        }
        if not sum(found.values()):
            raise DataError(f"there is nothing at {address}; check the address")
        size += sum(plain_size(key, held) for key, held in found.items())
    local = [Path(address) for address in inputs if not is_s3(address)]
    if local:
        files = input_files(local)
        addresses += objects.upload(s3, files, raw, bars)
        size += sum(plain_size(path.name, path.stat().st_size) for path in files)
    return addresses, size


def _with_stopwords_there(deployment: Deployment, settings: Settings, work: Place) -> Settings:
    """The settings, with a file of stopwords of one's own put where the tasks can fetch it."""
    load_stopwords(settings.stopwords)
    if settings.stopwords in ("nltk", "none"):
        return settings
    key = f"{work.key}stopwords.txt"
    deployment.session.client("s3").upload_file(settings.stopwords, work.bucket, key)
    return replace(settings, stopwords=str(Place(work.bucket, key)))
