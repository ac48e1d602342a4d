"""EMR cluster of a deployment: functions that submit, find, follow and cancel steps, and explain why a step failed.

Do not rely on a step's log for errors. EMR copies the log to the bucket minutes after the step has ended, and the log
lacks the output of Hadoop Streaming tasks. A step writes its error message for the user to the object `failure`.
"""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.agent.documents import MAX_ERROR_LENGTH, TOKEN, Cancellation
from bootstrap.aws import clusters, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.interrupt import Detached
from bootstrap.preprocessing.step_arguments import WorkerResources, workers
from bootstrap.progress import Bars, note
from common.errors import DataError, ShoalError
from corpus.reading.s3 import S3Path, put, read_text
from infra import catalog, cost, topology
from infra.topology_error import TopologyError

if TYPE_CHECKING:
    from mypy_boto3_emr.type_defs import DescribeStepOutputTypeDef, InstanceGroupTypeDef, StepConfigTypeDef


_ACTIVE_STATES = ("PENDING", "RUNNING", "CANCEL_PENDING")
_LOG_PATIENCE_SECONDS = 20
_CANCEL_SECONDS = 60
_ANSWER_SECONDS = 300
"""Maximum seconds until a step has stopped its work on YARN. The limit is long, because YARN's commands are slow on a
busy primary node."""
_MIN_PAUSE, _MAX_PAUSE = 0.5, 15.0


class EmrCluster:
    """Running EMR cluster of a deployment. The constructor raises ShoalError if the cluster is terminated or does not
    exist."""

    def __init__(self, deployment: Deployment) -> None:
        if kind := deployment.outputs.get(topology.OUTPUT_ON_NODE):
            raise ShoalError(
                f"the deployment '{deployment.name}' has no cluster: its node ({kind}) preprocesses its own data; "
                f"run: shoal train --deployment {deployment.name} --input FILE... --output DIR"
            )
        self._session = deployment.session
        self._s3 = deployment.session.client("s3")
        self._emr = deployment.session.client("emr")
        self.id = deployment.output(topology.OUTPUT_CLUSTER_ID)
        self._data = deployment.output(topology.OUTPUT_DATA_BUCKET)
        self._logs = S3Path(deployment.output(topology.OUTPUT_LOG_BUCKET), f"{topology.EMR_LOGS_PREFIX}{self.id}/")
        if end := self._end():
            raise ShoalError(
                f"the cluster {self.id} has terminated ({end}); `shoal deploy {deployment.topology} --deployment "
                f"{deployment.name}` creates a new one and does not change the buckets"
            )

    def workers(self) -> WorkerResources:
        """Return the resources of the nodes that run map and reduce tasks: the core and task nodes, or only the primary
        node in a cluster without them."""
        nodes: Counter[catalog.InstanceType] = Counter()
        groups = self._groups()
        for group in [each for each in groups if each["InstanceGroupType"] != "MASTER"] or groups:
            nodes[catalog.find(group["InstanceType"])] += group["RequestedInstanceCount"]
        return workers(nodes)

    def _groups(self) -> "list[InstanceGroupTypeDef]":
        return self._emr.list_instance_groups(ClusterId=self.id)["InstanceGroups"]

    def cost_so_far(self, ids: Collection[str]) -> Callable[[], float | None]:
        """Return a function that returns the cost of the cluster, in dollars, since the first of these steps was
        submitted.

        The cost is computed as if the current nodes had been running all the time. The function returns None if the
        cost is unknown.
        """
        groups = self._groups()
        described = [self._emr.describe_step(ClusterId=self.id, StepId=each)["Step"]["Status"] for each in ids]
        created = [each.get("Timeline", {}).get("CreationDateTime") for each in described]
        try:
            prices = catalog.prices(str(self._session.region_name))
            rates = [each["RunningInstanceCount"] * cost.emr_node(each["InstanceType"], prices) for each in groups]
        except TopologyError:
            return lambda: None
        started = min(filter(None, created), default=None)
        if started is None or not sum(rates):
            return lambda: None
        return lambda: sum(rates) * max(0.0, (datetime.now(UTC) - started).total_seconds()) / 3600

    def active_steps(self, prefix: str) -> dict[str, str]:
        """Return the ids of the active steps with names that start with `prefix`. The keys are the names without the
        prefix.

        The oldest step comes first, although EMR lists the newest step first.
        """
        pages = self._emr.get_paginator("list_steps").paginate(ClusterId=self.id, StepStates=["PENDING", "RUNNING"])
        listed = [step for page in pages for step in page["Steps"]]
        ids_by_name = {step["Name"]: step["Id"] for step in reversed(listed)}
        return {name.removeprefix(prefix): ids_by_name[name] for name in ids_by_name if name.startswith(prefix)}

    def submit(self, steps: Sequence["StepConfigTypeDef"]) -> list[str]:
        """Submit steps to the cluster, and return their ids. The cluster runs the steps in this order."""
        return self._emr.add_job_flow_steps(JobFlowId=self.id, Steps=steps)["StepIds"]

    def tokens(self, ids: Collection[str], run: str) -> set[str]:
        """Return the tokens of all launches of a run that submitted these steps. The tokens are read from the steps'
        arguments."""
        tokens = set()
        for each in ids:
            step = retrying(partial(self._emr.describe_step, ClusterId=self.id, StepId=each))["Step"]
            words = step["Config"]["Args"]
            tokens |= {after for before, after in itertools.pairwise(words) if before == run and TOKEN.fullmatch(after)}
        return tokens

    @contextmanager
    def cancelling(self, ids: Collection[str], cancellation: Cancellation) -> Iterator[None]:
        """Cancel the unfinished steps if the block raises an error. If the block raises an AWS error or Detached, the
        steps continue.

        The steps must have been submitted with this launch's token (`step_arguments.cancellable`). Raises Abandoned if
        the user interrupts again before AWS has answered; the steps then continue. Raises ShoalError if some jobs of
        the steps might still be running.
        """
        try:
            yield
        except (BotoCoreError, ClientError, Detached):
            raise  # the cluster continues, and the next command finds the steps
        except BaseException:
            try:
                if retrying.unanswered:
                    note(
                        "Shoal cancels the steps as soon as AWS answers; to leave and let them continue, press Ctrl-C "
                        "again"
                    )
                self.cancel(ids, cancellation)
            except KeyboardInterrupt as interrupt:
                raise Abandoned(interrupt) from None
            raise

    def follow(self, ids: Mapping[str, str], failure: S3Path, bars: Bars) -> None:
        """Wait until the steps have completed. `ids` maps the names of the steps to their ids. `bars` shows each step
        as a stage, with the cost so far.

        If a step fails, raise DataError with the message that the step wrote to `failure`. Without such a message,
        raise ShoalError with the reason from EMR or from the step's log.
        """
        cost_now = self.cost_so_far(ids.values()) if ids else (lambda: None)
        for name, step_id in ids.items():
            bars.stage(name, 0)
            self._wait(step_id, failure, bars, cost_now)

    def _wait(self, step_id: str, failure: S3Path, bars: Bars, cost_now: Callable[[], float | None]) -> None:
        pause = _MIN_PAUSE
        while True:
            step = retrying(partial(self._emr.describe_step, ClusterId=self.id, StepId=step_id))
            state = step["Step"]["Status"]["State"]
            if state == "COMPLETED":
                return
            if state not in _ACTIVE_STATES:
                raise self._failure_of(step, failure)
            if (dollars := cost_now()) is not None:
                bars.say(**{"cost so far": f"${dollars:,.2f}"})
            bars.tick()
            time.sleep(pause)
            pause = min(pause * 1.2, _MAX_PAUSE)

    def _end(self) -> str | None:
        """Return the reason why the cluster terminated, or None if the cluster is running."""
        status = clusters.status_of(self._emr, self.id)
        if status["State"] not in clusters.ENDED:
            return None
        return status.get("StateChangeReason", {}).get("Message") or f"state {status['State']}"

    def _failure_of(self, step: "DescribeStepOutputTypeDef", failure: S3Path) -> Exception:
        if sentence := read_text(self._s3, failure):
            return DataError(sentence)
        if end := self._end():
            return ShoalError(f"the cluster {self.id} terminated ({end}); its log is in {self._logs}")
        status = step["Step"]["Status"]
        log = S3Path(self._logs.bucket, f"{self._logs.key}steps/{step['Step']['Id']}/")
        details = status.get("FailureDetails", {})
        reason = (
            self._last_line(log)
            or details.get("Message")
            or details.get("Reason")
            or status.get("StateChangeReason", {}).get("Message")
            or "no reason given"
        )
        return ShoalError(
            f"the step '{step['Step']['Name']}' ended as {status['State']}: {reason}; after some minutes its log is in "
            f"{log}, and the logs of its tasks in {self._logs}containers/"
        )

    def _last_line(self, log: S3Path) -> str | None:
        """Return the last line of a step's standard error, or None if the log does not appear in the log bucket within
        `_LOG_PATIENCE_SECONDS`."""
        place = S3Path(log.bucket, f"{log.key}stderr.gz")
        deadline = time.monotonic() + _LOG_PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if (text := objects.log_tail(self._s3, place)) is not None:
                return text.splitlines()[-1] if text else None
            time.sleep(2)
        return None

    def cancel(self, ids: Collection[str], cancellation: Cancellation) -> None:
        """Cancel the steps that have not ended, and wait until they write nothing more.

        A running step first stops its own jobs, and then waits until EMR terminates it. Raises ShoalError if its jobs
        might still be running.
        """
        if not self._unfinished(ids):
            return
        place = S3Path(self._data, cancellation.key)
        retrying(partial(put, self._s3, place, cancellation.to_json().encode()))
        self._cancel_steps(self._unfinished(ids, "PENDING"))
        answer = self._answer(ids, cancellation)
        self._cancel_steps(self._unfinished(ids), StepCancellationOption="TERMINATE_PROCESS")
        deadline = time.monotonic() + _CANCEL_SECONDS
        while self._unfinished(ids) and time.monotonic() < deadline:
            time.sleep(_MIN_PAUSE)
        retrying(partial(objects.remove, self._s3, place))
        if answer.error:
            raise ShoalError(
                f"the steps of run {cancellation.run} are cancelled, but its jobs might continue on the cluster "
                f"{self.id}, which costs money until they end: {answer.error}"
            )

    def _cancel_steps(self, ids: Collection[str], **options: Any) -> None:
        if ids:
            retrying(partial(self._emr.cancel_steps, ClusterId=self.id, StepIds=list(ids), **options))

    def _answer(self, ids: Collection[str], cancellation: Cancellation) -> Cancellation:
        """Wait until the running step has stopped its work, and return its answer. If no step is running, return the
        cancellation itself. If the step does not answer in time, the returned cancellation has an error."""
        deadline = time.monotonic() + _ANSWER_SECONDS
        while self._unfinished(ids):
            if time.monotonic() > deadline:
                return replace(cancellation, error=f"the step has not answered for {_ANSWER_SECONDS} seconds")
            if text := retrying(partial(read_text, self._s3, S3Path(self._data, cancellation.answer_key))):
                try:
                    answer = Cancellation.from_json(text)
                except DataError as error:
                    return replace(cancellation, error=f"Shoal cannot read its answer: {error}"[:MAX_ERROR_LENGTH])
                if answer.token == cancellation.token:
                    return answer
            time.sleep(_MIN_PAUSE)
        return cancellation

    def _unfinished(self, ids: Collection[str], *states: str) -> list[str]:
        """Return the ids of the steps that are in one of these states. Without states, return the ids of the steps that
        have not ended."""
        described = {each: retrying(partial(self._emr.describe_step, ClusterId=self.id, StepId=each)) for each in ids}
        return [each for each in ids if described[each]["Step"]["Status"]["State"] in (states or _ACTIVE_STATES)]
