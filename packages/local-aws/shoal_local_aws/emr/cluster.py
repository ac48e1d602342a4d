"""Emulates an EMR cluster, which boots, runs its steps and terminates.

A cluster is one emulated machine, its primary node. Hadoop Streaming uses this computer's cores. Steps run one after
another, even if the cluster has a higher step concurrency. The only state is the record for DescribeCluster and the
list for ListSteps, both under one lock. Set a step's status only after its logs are in S3, so that a client that sees a
failure finds the reason.
"""

import gzip
import logging
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from shoal_local_aws.emr.traffic import allow_traffic_of_cluster
from shoal_local_aws.faults.kinds import AttemptFaults
from shoal_local_aws.hadoop import yarn
from shoal_local_aws.hadoop.streaming import attempt_faults_environment
from shoal_local_aws.hadoop.yarn import LOGS
from shoal_local_aws.nodes.commands import write_program
from shoal_local_aws.nodes.machine import Machine
from shoal_local_aws.permissions import identities
from shoal_local_aws.permissions.checks import is_allowed
from shoal_local_aws.processes import kill_marked
from shoal_local_aws.seams import requests
from shoal_local_aws.service import Record, acting_as, client

TERMINATED = ("TERMINATED", "TERMINATED_WITH_ERRORS")
_logger = logging.getLogger(__name__)
_MARK = "EMR_STEP_ID"
# Belief: A cancelled step has 30 seconds, and a transient cluster waits for a step. No check: it costs a cluster.
_GRACE_SECONDS = 30.0
_FIRST_STEP_SECONDS = 20.0
"""Time that a cluster with automatic termination waits for its first step. On AWS, instances take minutes to start, and
clients add steps during this time."""
# Rule: Touching this file shows that a cluster is not idle. Source: "Using an auto-termination policy".
_BUSY = "emr/metricscollector/isbusy"
_IDLE = ("AUTO_TERMINATION", "Terminated by the cluster's auto-termination policy")


class EmulatedCluster:
    """A cluster that runs on its own thread, from `start` until its termination.

    After `idle_seconds`, an idle cluster terminates. A cluster with a YARN application is not idle. A step without YARN
    application counts as idle unless it touches EMR's file `isbusy` on the primary node. `start_error` is the reason
    why EMR does not start the cluster. `attempt_faults` is called before each job. `history` contains the cluster's
    states so far, each with its start time in Unix seconds.
    """

    def __init__(
        self,
        *,
        record: Record,
        steps: list[Record],
        machine: Machine,
        attempt_faults: Callable[[], AttemptFaults | None],
        idle_seconds: int | None,
        start_error: str = "",
    ) -> None:
        self.record = record
        self.idle_seconds = idle_seconds
        self._steps = steps
        self.machine = machine
        self._attempt_faults = attempt_faults
        self._start_error = start_error
        self._changed = threading.Condition()
        self.history: list[tuple[float, str]] = []
        self._forced: set[str] = set()
        self._ending: tuple[str, str] | None = None
        self._finished = threading.Event()
        self._set_state("STARTING")

    @property
    def state(self) -> str:
        state: str = self.record["Status"]["State"]
        return state

    def start(self) -> None:
        requests.spawn_background(self._run_lifecycle, thread_name=self.record["Id"])

    def add(self, steps: Sequence[Record]) -> list[str]:
        with self._changed:
            self._steps.extend(steps)
            self._changed.notify_all()
        return [step["Id"] for step in steps]

    def cancel(self, identifier: str, *, forced: bool) -> Record:
        """Cancel a pending or running step. If `forced`, kill its processes at once. Return EMR's response."""
        with self._changed:
            step = next((step for step in self._steps if step["Id"] == identifier), None)
            state = step["Status"]["State"] if step else None
            # Rule: Pending and running steps can be cancelled. Source: botocore emr CancelSteps.
            if step is None or state not in ("PENDING", "RUNNING"):
                reason = f"Step in state {state} cannot be cancelled." if step else "No such step."
                return {"StepId": identifier, "Status": "FAILED", "Reason": reason}
            if state == "PENDING":
                _finish(step, "CANCELLED", message="Step was cancelled by user request")
            else:
                step["Status"]["State"] = "CANCEL_PENDING"
                self._forced |= {identifier} if forced else set()
            self._changed.notify_all()
        return {"StepId": identifier, "Status": "SUBMITTED"}

    def terminate(self, code: str, message: str) -> None:
        """Start the termination of the cluster. `wait_until_terminated` waits until it is complete."""
        with self._changed:
            if self._ending is None and self.state not in TERMINATED:
                self._ending = (code, message)
                self._set_state("TERMINATING", code, message)
                self._changed.notify_all()

    def wait_until_ready(self) -> None:
        """Wait until the cluster accepts steps or has terminated."""
        with self._changed:
            self._changed.wait_for(lambda: self.state in ("WAITING", "RUNNING", *TERMINATED))

    def wait_until_terminated(self) -> None:
        self._finished.wait()

    # Lifecycle

    def _run_lifecycle(self) -> None:
        try:
            if self._start_error:
                self.terminate("VALIDATION_ERROR", self._start_error)
                return
            service, profile = self.record["ServiceRole"], self.record["Ec2InstanceAttributes"]["IamInstanceProfile"]
            role = identities.role_of_profile(profile)
            arn, to = f"arn:aws:iam::{requests.account()}:role/{role}", {"iam:PassedToService": "ec2.amazonaws.com"}
            # Rule: A service role without permissions ends the cluster. Source: aws/aws-parallelcluster#3505.
            if not is_allowed(service, "EMR", ["iam:PassRole"], arn, to):
                self.terminate("VALIDATION_ERROR", f"Service role {service} has insufficient EC2 permissions")
                return
            with acting_as(identities.session_of(service, "EMR")):
                allow_traffic_of_cluster(self.record["Ec2InstanceAttributes"])
            self._set_state("BOOTSTRAPPING")
            with acting_as(identities.session_of(role, self.record["Id"])):
                if self._bootstrap():
                    (self.machine.root / _BUSY).parent.mkdir(parents=True, exist_ok=True)
                    self._run_steps()
        finally:
            self._end()

    def _bootstrap(self) -> bool:
        commands = self.machine.root / "usr" / "local" / "bin"
        commands.mkdir(parents=True, exist_ok=True)
        for name, body in yarn.programs().items():
            write_program(commands / name, body)
        jar = commands.parent / "lib" / "hadoop-streaming.jar"  # mrjob looks for it near the command `hadoop`
        jar.parent.mkdir(exist_ok=True)
        jar.touch()
        for number, action in enumerate(self.record["BootstrapActions"], start=1):
            script = action["ScriptBootstrapAction"]
            place = f"node/{self.record['Id']}/bootstrap-actions/{number}"
            path = self.machine.root / "bootstrap" / str(number) / Path(script["Path"]).name
            path.parent.mkdir(parents=True, exist_ok=True)
            parts = urlsplit(script["Path"])
            try:
                client("s3").download_file(parts.netloc, parts.path.lstrip("/"), str(path))
            except Exception as error:  # any S3 error terminates the cluster
                self.terminate("BOOTSTRAP_FAILURE", f"Bootstrap action {number}: {script['Path']}: {error}")
                return False
            code = self._run(["bash", str(path), *script.get("Args", [])], place, mark=f"{self.record['Id']}/{number}")
            # Rule: A failed bootstrap action is final. Source: terraform-aws-modules/terraform-aws-security-group#91.
            if code:
                self.terminate(
                    "BOOTSTRAP_FAILURE",
                    f"On the master instance, bootstrap action {number} returned a non-zero return code ({code}); "
                    f"see {self.record.get('LogUri', '')} {place}/stderr.gz",
                )
            if self._ending:
                return False
        return True

    def _run_steps(self) -> None:
        idle_since = time.monotonic()
        while self._ending is None:
            with self._changed:
                step = next((step for step in self._steps if step["Status"]["State"] == "PENDING"), None)
                if step is None:
                    if self.state != "WAITING":
                        self._set_state("WAITING")
                        idle_since = time.monotonic()
                    busy = bool(yarn.applications(self.machine.root))
                    idle_since = time.monotonic() if busy else idle_since
                    waits = not self._steps and time.monotonic() - idle_since < _FIRST_STEP_SECONDS
                    if self.record["AutoTerminate"] and not waits:
                        self._ending = ("ALL_STEPS_COMPLETED", "Steps completed")
                    elif not busy and self._is_over(time.monotonic() - idle_since):
                        self._ending = _IDLE
                    else:
                        self._changed.wait(timeout=1)
                    continue
                self._set_state("RUNNING")
                step["Status"]["State"] = "RUNNING"
                step["Status"]["Timeline"]["StartDateTime"] = time.time()
            self._run_step(step)

    def _run_step(self, step: Record) -> None:
        configuration = step["Config"]
        place = f"steps/{step['Id']}"
        command = configuration["Args"]
        extra = attempt_faults_environment(self._attempt_faults() or AttemptFaults())
        if configuration["Jar"] != "command-runner.jar" or not command:
            message = f"The embedded EMR supports command-runner.jar with arguments, not {configuration['Jar']}."
            self._finish_step(step, "FAILED", message)
            return
        code = self._run(command, place, mark=step["Id"], step=step, extra=extra)
        self._keep_task_logs()
        with self._changed:
            cancelled = step["Status"]["State"] == "CANCEL_PENDING" or self._ending is not None
        if cancelled:
            self._finish_step(step, "CANCELLED", "Step was cancelled by user request")
        elif code == 0:
            self._finish_step(step, "COMPLETED", "")
        else:
            self._finish_step(step, "FAILED", f"The step's command ended with exit code {code}.")

    def _finish_step(self, step: Record, state: str, message: str) -> None:
        """Set the final state of a step. If the step failed, apply its `ActionOnFailure`."""
        with self._changed:
            log = f"{self.record['LogUri'].rstrip('/')}/{self.record['Id']}/steps/{step['Id']}/stderr.gz"
            _finish(step, state, message=message, log=log if self.record["LogUri"] else None)
            action = step["ActionOnFailure"]
            if state == "FAILED" and action in ("TERMINATE_CLUSTER", "TERMINATE_JOB_FLOW"):
                self._ending = ("STEP_FAILURE", "Shut down as step failed")
            elif state == "FAILED" and action == "CANCEL_AND_WAIT":
                self._cancel_pending("An earlier step failed")
            self._changed.notify_all()

    def _cancel_pending(self, message: str) -> None:
        for step in self._steps:
            if step["Status"]["State"] in ("PENDING", "RUNNING", "CANCEL_PENDING"):
                _finish(step, "CANCELLED", message=message)

    def _end(self) -> None:
        code, message = self._ending or ("INTERNAL_ERROR", "The embedded EMR failed; see its log")
        self.machine.kill()
        shutil.rmtree(self.machine.root, ignore_errors=True)
        with self._changed:
            self._cancel_pending("Cluster was terminated")
            planned = code in ("USER_REQUEST", "ALL_STEPS_COMPLETED", "AUTO_TERMINATION")
            # Belief: An idle cluster ends as by a user's request. No check: it takes a cluster.
            reason = "USER_REQUEST" if code == "AUTO_TERMINATION" else code
            self._set_state("TERMINATED" if planned else "TERMINATED_WITH_ERRORS", reason, message)
            self.record["Status"]["Timeline"]["EndDateTime"] = time.time()
            for group in self.record["InstanceGroups"]:
                group["RunningInstanceCount"] = 0
                group["Status"]["State"] = "TERMINATED"
            self._changed.notify_all()
        self._finished.set()

    def _set_state(self, state: str, code: str = "", message: str = "") -> None:
        with self._changed:
            status = self.record["Status"]
            status["State"] = state
            self.history.append((time.time(), state))
            status["StateChangeReason"] = {"Code": code, "Message": message} if code else {}
            if state == "STARTING":
                status["Timeline"].pop("ReadyDateTime", None)
            elif state == "WAITING":
                status["Timeline"].setdefault("ReadyDateTime", time.time())
            self._changed.notify_all()

    # Processes and logs

    def _run(
        self,
        command: Sequence[str],
        place: str,
        *,
        mark: str,
        step: Record | None = None,
        extra: dict[str, str] | None = None,
    ) -> int:
        """Run a command on the cluster, upload its output to the log bucket, and return its exit code."""
        folder = self.machine.root / "mnt" / "var" / "log" / "hadoop" / place
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as files:
            stdout, stderr = (files.enter_context((folder / name).open("wb")) for name in ("stdout", "stderr"))
            try:
                process = self.machine.start(
                    command, stdout=stdout, stderr=stderr, extra={**(extra or {}), _MARK: mark}
                )
            except OSError as error:
                stderr.write(f"{error}\n".encode())
                code = 127
            else:
                code = self._watch(process, mark, step)
        for name in ("stdout", "stderr"):
            self._keep_log(folder / name, f"{place}/{name}")
        return code

    def _keep_task_logs(self) -> None:
        """Upload the standard error of the tasks of the last streaming job, and delete it on the machine."""
        containers = self.machine.root / LOGS
        for log in containers.glob("*/*/stderr"):
            if log.stat().st_size:
                self._keep_log(log, f"containers/{log.relative_to(containers)}")
        shutil.rmtree(containers, ignore_errors=True)

    def _keep_log(self, log: Path, place: str) -> None:
        if self.record["LogUri"]:
            parts = urlsplit(self.record["LogUri"])
            key = "/".join(part for part in (parts.path.strip("/"), self.record["Id"], f"{place}.gz") if part)
            try:
                client("s3").put_object(Bucket=parts.netloc, Key=key, Body=gzip.compress(log.read_bytes()))
            except ClientError as error:  # as on AWS, a lost log does not fail the cluster
                _logger.warning("log %s of bucket %s is lost: %s", key, parts.netloc, error)

    def _watch(self, process: "subprocess.Popen[bytes]", mark: str, step: Record | None) -> int:
        began = time.time()
        while process.poll() is None:
            on_yarn = step is None or yarn.applications(self.machine.root)
            if not on_yarn and self._ending is None and self._seems_idle(began):
                self._ending = _IDLE
            if step is not None and step["Status"]["State"] == "CANCEL_PENDING":
                if step["Id"] not in self._forced:
                    process.terminate()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_GRACE_SECONDS)
                break
            if self._ending is not None:
                break
            time.sleep(0.05)
        kill_marked(_MARK, mark)
        return process.wait()

    def _seems_idle(self, since: float) -> bool:
        """Return whether a process without YARN, started at `since`, last touched `isbusy` too long ago."""
        touched = self.machine.root / _BUSY
        seen = max(since, touched.stat().st_mtime if touched.exists() else 0.0)
        return self._is_over(time.time() - seen)

    def _is_over(self, seconds: float) -> bool:
        """Return whether an idle time exceeds the cluster's limit."""
        return self.idle_seconds is not None and seconds > self.idle_seconds


def _finish(step: Record, state: str, *, message: str, log: str | None = None) -> None:
    status = step["Status"]
    status["State"] = state
    status["Timeline"]["EndDateTime"] = time.time()
    if state == "FAILED":
        # Rule: EMR does not know why a program failed. Source: botocore emr DescribeStep.
        details = {"Reason": "Unknown Error.", "Message": message}
        status["FailureDetails"] = details | ({"LogFile": log} if log else {})
    elif message:
        status["StateChangeReason"] = {"Message": message}
