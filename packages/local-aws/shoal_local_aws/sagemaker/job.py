"""Runs one training job: downloads data into containers, runs them, and uploads their results.

A container is an emulated machine. A folder stands for its /opt/ml. SAGEMAKER_BASE_DIR names it, for AWS's toolkit. In
place of AWS's image the container runs this Python interpreter. All hosts have the loopback address.
"""

import io
import json
import os
import re
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from shoal_local_aws.faults.file import Faults
from shoal_local_aws.faults.kinds import JobInterrupted
from shoal_local_aws.nodes.machine import Machine, Machines
from shoal_local_aws.permissions import identities
from shoal_local_aws.seams import requests
from shoal_local_aws.seams.lookup import Record
from shoal_local_aws.service import acting_as, client

ENDED = ("Completed", "Failed", "Stopped")
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
# Rule: A stopped program has 120 seconds. Source: botocore sagemaker StopTrainingJob.
_GRACE_SECONDS = 120.0
_LOOK_SECONDS = 0.2
_SYNC_SECONDS = 1.0
_BASE = "/opt/ml"
_SHOWN = (
    *("TrainingJobName", "HyperParameters", "AlgorithmSpecification", "RoleArn", "InputDataConfig", "OutputDataConfig"),
    *("ResourceConfig", "StoppingCondition", "CheckpointConfig", "Environment", "EnableNetworkIsolation"),
    *("EnableInterContainerTrafficEncryption", "EnableManagedSpotTraining"),
)
_AWS_IMAGE = re.compile(
    r"763104351884\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com/pytorch:\d+\.\d+\.\d+-(cu\d+|cpu)-amzn2023-sagemaker"
)
"""Addresses of AWS's images (github.com/aws/deep-learning-containers, docs/src/data, read on 2026-11-30)."""
_RESOLVER = Path(__file__).with_name("container")
"""Folder with the Python module that resolves host names in a container, in place of /etc/hosts."""


class JobError(Exception):
    """The training job failed. The message is the job's `FailureReason`."""


@dataclass(kw_only=True)
class Container:
    """One host of a training job: its machine, and the folder that stands for its /opt/ml."""

    host: str
    machine: Machine
    base: Path
    process: "subprocess.Popen[bytes] | None" = None
    logged: int = 0
    """Number of bytes of the container's output that CloudWatch already has."""

    @property
    def output(self) -> Path:
        return self.machine.root / "var" / "log" / "container.log"


class EmulatedJob:
    """A training job that runs on its own thread after `start`. `record` is DescribeTrainingJob's response."""

    def __init__(self, request: Record, *, machines: Machines, faults: Faults) -> None:
        self.tags = request.get("Tags") or []
        self._machines, self._faults = machines, faults
        name, place = request["TrainingJobName"], f"{requests.region()}:{requests.account()}"
        self.record: Record = {name: request[name] for name in _SHOWN if name in request}
        self.record |= {
            "TrainingJobArn": f"arn:aws:sagemaker:{place}:training-job/{name.lower()}",
            "CreationTime": time.time(),
            "SecondaryStatusTransitions": [],
        }
        self._asked_to_stop = threading.Event()
        self._was_asked = False
        self._uploaded: dict[str, tuple[int, int]] = {}
        self._to("InProgress", "Starting")

    def start(self) -> None:
        requests.spawn_background(self._run, thread_name=self.record["TrainingJobName"])

    def stop(self) -> None:
        self._to("Stopping", "Stopping")
        self._asked_to_stop.set()

    def _run(self) -> None:
        try:
            with acting_as(identities.session_of(self.record["RoleArn"], "SageMaker")):
                self._require_image()
                while self._attempt():
                    self._to("InProgress", "Interrupted")
                    self._to("InProgress", "Starting")
        except JobError as error:
            self.record["FailureReason"] = str(error)[:1024]
            self._end("Failed", "Failed")
        except Exception as error:  # any other error also fails the job
            self.record["FailureReason"] = f"InternalServerError: {type(error).__name__}: {error}"[:1024]
            self._end("Failed", "Failed")

    def _require_image(self) -> None:
        image = self.record["AlgorithmSpecification"]["TrainingImage"]
        if not _AWS_IMAGE.fullmatch(image):
            raise JobError(f"ClientError: Cannot find repository: {image}: the embedded AWS has only AWS's own image")

    def _attempt(self) -> bool:
        """Run the containers once. Return True if they were interrupted, so that the job must start again."""
        containers = [self._container(host) for host in self._hosts()]
        try:
            self._to(None, "Downloading")
            for each in containers:
                self._prepare_folders(each.base)
            self._to(None, "Training")
            self.record.setdefault("TrainingStartTime", time.time())
            for each in containers:
                self._start(each)
            if self._follow(containers):
                return True
            self._finish(containers)
        finally:
            for each in containers:
                each.machine.kill()
                self._machines.discard(each.machine)
        return False

    def _hosts(self) -> list[str]:
        return [f"algo-{number}" for number in range(1, self.record["ResourceConfig"]["InstanceCount"] + 1)]

    def _container(self, host: str) -> Container:
        name = f"{self.record['TrainingJobName']}-{host}-{time.monotonic_ns()}"
        machine = self._machines.make("jobs", name, {"CUDA_VISIBLE_DEVICES": ""}, profile="")
        self._machines.give_interpreter(machine.root / "usr" / "local" / "bin" / "python3")
        return Container(host=host, machine=machine, base=machine.root / _BASE.lstrip("/"))

    # Content of a container before it starts

    def _prepare_folders(self, base: Path) -> None:
        for folder in ("input/config", "input/data", "model", "output/data"):
            (base / folder).mkdir(parents=True)
        for channel in self.record.get("InputDataConfig") or []:
            source = channel["DataSource"]["S3DataSource"]
            folder = base / "input" / "data" / channel["ChannelName"]
            # Belief: A channel without objects fails the job. No check: it costs a training job.
            if not self._download(source["S3Uri"], folder):
                raise JobError(f"ClientError: Data download failed: no objects found for {source['S3Uri']}")
        written: Mapping[str, Any] = {
            "hyperparameters": self.record.get("HyperParameters") or {},
            "resourceconfig": {"hosts": self._hosts(), "network_interface_name": "lo"},
        }
        for name, content in written.items():
            (base / "input" / "config" / f"{name}.json").write_text(json.dumps(content))
        if checkpoints := self.record.get("CheckpointConfig"):
            kept = base / _local(checkpoints)
            kept.mkdir(parents=True)
            self._download(checkpoints["S3Uri"].rstrip("/") + "/", kept)

    def _download(self, address: str, folder: Path) -> int:
        """Download all objects with the prefix `address` to a folder. Return the number of objects."""
        bucket, prefix = _object(address)
        folder.mkdir(parents=True, exist_ok=True)
        number = 0
        try:
            for page in client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
                for each in page.get("Contents", ()):
                    name = each["Key"][len(prefix) :].lstrip("/") or each["Key"].rpartition("/")[2]
                    path = folder / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    client("s3").download_file(bucket, each["Key"], str(path))
                    number += 1
        except ClientError as error:
            # Belief: A refused download fails the job. No check: it costs a training job.
            raise JobError(f"ClientError: Data download failed:{address}: {error}") from error
        return number

    # Running containers

    def _start(self, container: Container) -> None:
        config = container.base / "input" / "config" / "resourceconfig.json"
        config.write_text(json.dumps({"current_host": container.host, **json.loads(config.read_text())}))
        algorithm = self.record["AlgorithmSpecification"]
        entry = [*algorithm.get("ContainerEntrypoint", ("train",)), *algorithm.get("ContainerArguments", ())]
        names = container.machine.root / "etc" / "hosts"
        names.parent.mkdir()
        names.write_text("".join(f"127.0.0.1 {host}\n" for host in self._hosts()))
        isolated = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"} if self.record.get("EnableNetworkIsolation") else {}
        with container.output.open("ab") as output:
            container.process = container.machine.start(
                [word.replace(_BASE, str(container.base), 1) for word in entry],
                stdout=output,
                extra={
                    "SAGEMAKER_BASE_DIR": str(container.base),
                    "TRAINING_JOB_NAME": self.record["TrainingJobName"],
                    "TRAINING_JOB_ARN": self.record["TrainingJobArn"],
                    "PYTHONPATH": str(_RESOLVER),
                    "CONTAINER_HOSTS": str(names),
                    **isolated,
                    **(self.record.get("Environment") or {}),
                },
            )

    def _follow(self, containers: Sequence[Container]) -> bool:
        """Upload checkpoints and output until all containers have exited or one has failed. Return whether the job was
        interrupted, so that it must start again."""
        asked, synced = None, 0.0
        limit = time.monotonic() + self.record["StoppingCondition"].get("MaxRuntimeInSeconds", 24 * 3600)
        while any(_status(each) is None for each in containers):
            if asked is None and any(_status(each) for each in containers):
                break
            if time.monotonic() - synced >= _SYNC_SECONDS:
                self._sync(containers)
                synced = time.monotonic()
                if self._is_interrupted():
                    return True
            if asked is None and (self._asked_to_stop.is_set() or time.monotonic() > limit):
                asked = time.monotonic()
                if not self._asked_to_stop.is_set():
                    self._to("InProgress", "MaxRuntimeExceeded")
                for each in containers:
                    if each.process is not None:
                        each.process.send_signal(signal.SIGTERM)
            if asked is not None and time.monotonic() - asked > _GRACE_SECONDS:
                break
            time.sleep(_LOOK_SECONDS)
        self._was_asked = asked is not None
        return False

    def _is_interrupted(self) -> bool:
        """Return whether a fault interrupts the job now. Before the first checkpoint, no fault interrupts the job."""
        spot = self.record.get("EnableManagedSpotTraining") and not self._asked_to_stop.is_set()
        has_checkpoint = any(Path(name).parent.name == "checkpoints" for name in self._uploaded)
        return bool(spot and has_checkpoint and self._faults.trigger(JobInterrupted))

    def _sync(self, containers: Sequence[Container]) -> None:
        for each in containers:
            self._log(each)
        if checkpoints := self.record.get("CheckpointConfig"):
            for each in containers:
                self._upload_changed(each, each.base / _local(checkpoints), checkpoints["S3Uri"].rstrip("/"))

    def _upload_changed(self, container: Container, folder: Path, address: str) -> None:
        bucket, prefix = _object(address)
        for path in _files(folder):
            name = path.relative_to(folder).as_posix()
            with suppress(FileNotFoundError):  # the program may have deleted the file
                state = path.stat()
                known = f"{container.host}/{name}"
                if self._uploaded.get(known) != (state.st_mtime_ns, state.st_size):
                    client("s3").put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=path.read_bytes())
                    self._uploaded[known] = (state.st_mtime_ns, state.st_size)

    def _log(self, container: Container) -> None:
        """Send new lines of a container's output to CloudWatch."""
        with container.output.open("rb") as output:
            output.seek(container.logged)
            whole, newline, _ = output.read().rpartition(b"\n")
        lines = [line for line in whole.decode("utf-8", "replace").splitlines() if line]
        stream = f"{self.record['TrainingJobName']}/{container.host}-{int(self.record['CreationTime'])}"
        logs = client("logs")
        if lines:
            with suppress(logs.exceptions.ResourceAlreadyExistsException):
                logs.create_log_group(logGroupName=LOG_GROUP)
            with suppress(logs.exceptions.ResourceAlreadyExistsException):
                logs.create_log_stream(logGroupName=LOG_GROUP, logStreamName=stream)
            events = [{"timestamp": int(time.time() * 1000), "message": line} for line in lines]
            logs.put_log_events(logGroupName=LOG_GROUP, logStreamName=stream, logEvents=events)
        container.logged += len(whole) + len(newline)

    # The end

    def _finish(self, containers: Sequence[Container]) -> None:
        for each in containers:
            # Belief: The reason of a failed program is its file, then its exit code. No check: it costs a training job.
            if (status := _status(each)) and not self._was_asked:
                self._sync(containers)
                failure = each.base / "output" / "failure"
                said = failure.read_text().strip() if failure.exists() else ""
                raise JobError(f"AlgorithmError: {said}, exit code: {status}")
        self._to(None, "Uploading")
        self._sync(containers)
        self._measure(containers)
        place = self.record["OutputDataConfig"]["S3OutputPath"].rstrip("/")
        output = f"{place}/{self.record['TrainingJobName']}/output"
        for name, folder in (("model", "model"), ("output", "output/data")):
            folders = [each.base / folder for each in containers]
            if any(folder.iterdir() for folder in folders if any(folder.iterdir())) or name == "model":
                bucket, key = _object(f"{output}/{name}.tar.gz")
                client("s3").put_object(Bucket=bucket, Key=key, Body=_packed(folders))
        self.record["ModelArtifacts"] = {"S3ModelArtifacts": f"{output}/model.tar.gz"}
        if not self._was_asked:
            self._end("Completed", "Completed")
        elif self._asked_to_stop.is_set():
            self._end("Stopped", "Stopped")
        else:
            self._end("Stopped", "MaxRuntimeExceeded")

    def _measure(self, containers: Sequence[Container]) -> None:
        """Record the last value of each metric that the request defines by a regular expression, and send it to
        CloudWatch."""
        printed = "\n".join(each.output.read_text("utf-8", "replace") for each in containers)
        data: list[Record] = [
            {"MetricName": each["Name"], "Value": float(values[-1])}
            for each in self.record["AlgorithmSpecification"].get("MetricDefinitions") or ()
            if (values := re.findall(each["Regex"], printed))
        ]
        if data:
            client("cloudwatch").put_metric_data(Namespace=LOG_GROUP, MetricData=data)
        self.record["FinalMetricDataList"] = [{**each, "Timestamp": time.time()} for each in data]

    def _end(self, status: str, secondary: str) -> None:
        now = time.time()
        began = self.record.get("TrainingStartTime", now)
        self.record |= {"TrainingEndTime": now, "TrainingTimeInSeconds": max(1, round(now - began))}
        # Spot instances cost about a third of the on-demand price. SageMaker expresses this as a shorter billable time.
        # Belief: A spot job is billed for less time. No check: it costs a training job.
        share = 0.3 if self.record.get("EnableManagedSpotTraining") else 1.0
        self.record["BillableTimeInSeconds"] = max(1, round(share * (now - began)))
        self._to(status, secondary)

    def _to(self, status: str | None, secondary: str) -> None:
        """Set the job's secondary status, and also its status if one is given."""
        now, before = time.time(), self.record["SecondaryStatusTransitions"]
        if self._asked_to_stop.is_set() and status == "InProgress":
            status = None
        if before:
            before[-1].setdefault("EndTime", now)
        self.record["SecondaryStatusTransitions"] = [*before, {"Status": secondary, "StartTime": now}]
        self.record |= {"SecondaryStatus": secondary, "LastModifiedTime": now}
        self.record["TrainingJobStatus"] = status or self.record["TrainingJobStatus"]


def _status(container: Container) -> int | None:
    """Return the exit status of a container, or None while it runs."""
    return container.process.poll() if container.process is not None else 0


def _local(checkpoints: Record) -> Path:
    """Return the container's folder for checkpoints, relative to the base folder."""
    return Path(checkpoints.get("LocalPath", f"{_BASE}/checkpoints")).relative_to(_BASE)


def _object(address: str) -> tuple[str, str]:
    """Return the bucket and the key of an S3 address."""
    place = urlsplit(address)
    return place.netloc, place.path.lstrip("/")


def _files(folder: Path) -> list[Path]:
    """Return all files below a folder. `Path.rglob` would fail if the program deleted a folder at the same time."""
    return sorted(Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def _packed(folders: Sequence[Path]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for folder in folders:
            for path in _files(folder):
                archive.add(path, path.relative_to(folder).as_posix())
    return packed.getvalue()
