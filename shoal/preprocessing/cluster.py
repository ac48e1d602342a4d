"""EMR cluster of a deployment: functions that submit, find and follow a step, and explain why it failed.

Do not rely on a step's log for errors. EMR copies the log to the bucket minutes after the step has ended, and the log
lacks the output of Hadoop Streaming tasks. A task writes its error message for the user to the object `failure`.
"""

import itertools
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from common import names
from common.errors import DataError, ShoalError
from common.names import TOKEN
from common.progress import reporter
from corpus.reading.s3 import S3Path, list_objects, place_of, read_text
from infra import catalog, cost
from infra.topology_error import TopologyError
from jobs.plan import Plan
from shoal.aws import clusters
from shoal.aws.deployment import Deployment
from shoal.aws.retry import retrying
from shoal.preprocessing.step_arguments import WorkerResources, workers

if TYPE_CHECKING:
    from mypy_boto3_emr.type_defs import InstanceGroupTypeDef, StepConfigTypeDef, StepTypeDef


_ACTIVE_STATES = ("PENDING", "RUNNING", "CANCEL_PENDING")
_MIN_PAUSE, _MAX_PAUSE = 0.5, 15.0


class EmrCluster:
    """Running EMR cluster of a deployment. The constructor raises ShoalError if the cluster is terminated or does not
    exist."""

    def __init__(self, deployment: Deployment) -> None:
        if kind := deployment.outputs.get(names.OUTPUT_ON_NODE):
            raise ShoalError(
                f"the deployment '{deployment.name}' has no cluster: its node ({kind}) preprocesses its own data; "
                f"run: shoal train --deployment {deployment.name} --input FILE... --output DIR"
            )
        self._session = deployment.session
        self.s3 = deployment.session.client("s3")
        self._emr = deployment.session.client("emr")
        self.id = deployment.output(names.OUTPUT_CLUSTER_ID)
        self.data_bucket = deployment.output(names.OUTPUT_DATA_BUCKET)
        self._logs = S3Path(deployment.output(names.OUTPUT_LOG_BUCKET), f"{names.EMR_LOGS}{self.id}/")
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

    def cost_so_far(self, step_id: str) -> Callable[[], float | None]:
        """Return a function that returns the cost of the cluster, in dollars, since the step was submitted.

        The cost is computed as if the current nodes had been running all the time. The function returns None if the
        cost is unknown.
        """
        groups = self._groups()
        started = self.describe(step_id)["Status"].get("Timeline", {}).get("CreationDateTime")
        try:
            prices = catalog.prices(str(self._session.region_name))
            rates = [each["RunningInstanceCount"] * cost.emr_node(each["InstanceType"], prices) for each in groups]
        except TopologyError:
            return lambda: None
        if started is None or not sum(rates):
            return lambda: None
        return lambda: sum(rates) * max(0.0, (datetime.now(UTC) - started).total_seconds()) / 3600

    def describe(self, step_id: str) -> "StepTypeDef":
        """Return the description of a step."""
        return retrying(partial(self._emr.describe_step, ClusterId=self.id, StepId=step_id))["Step"]

    def is_unfinished(self, step_id: str, *states: str) -> bool:
        """Return whether the step is in one of these states, or, without states, whether it has not ended."""
        return self.describe(step_id)["Status"]["State"] in (states or _ACTIVE_STATES)

    def cancel(self, step_id: str, **options: Any) -> None:
        """Ask EMR to cancel a step."""
        retrying(partial(self._emr.cancel_steps, ClusterId=self.id, StepIds=[step_id], **options))

    def active_steps(self, prefix: str) -> dict[str, str]:
        """Return the ids of the active steps with names that start with `prefix`. The keys are the names without the
        prefix.

        The oldest step comes first, although EMR lists the newest step first.
        """
        pages = self._emr.get_paginator("list_steps").paginate(ClusterId=self.id, StepStates=["PENDING", "RUNNING"])
        listed = [step for page in pages for step in page["Steps"]]
        ids_by_name = {step["Name"]: step["Id"] for step in reversed(listed)}
        return {name.removeprefix(prefix): ids_by_name[name] for name in ids_by_name if name.startswith(prefix)}

    def submit(self, step: "StepConfigTypeDef") -> str:
        """Submit a step to the cluster, and return its id. The cluster runs its steps one after the other."""
        return self._emr.add_job_flow_steps(JobFlowId=self.id, Steps=[step])["StepIds"][0]

    def token(self, step_id: str, run: str) -> str | None:
        """Return the token of the launch of a run that submitted the step, from the step's arguments."""
        words = self.describe(step_id)["Config"]["Args"]
        pairs = itertools.pairwise(words)
        return next((after for before, after in pairs if before == run and TOKEN.fullmatch(after)), None)

    def follow(self, step_id: str, plan: Plan) -> None:
        """Wait until the step has completed, and report the stages of the work, with the cost so far.

        If the step fails, raise DataError with the message that a task wrote. Without such a message, raise ShoalError
        with the reason from EMR.
        """
        cost_now = self.cost_so_far(step_id)
        pause, shown = _MIN_PAUSE, ""
        while True:
            step = self.describe(step_id)
            state = step["Status"]["State"]
            if state == "COMPLETED":
                return
            if state not in _ACTIVE_STATES:
                raise self._failure_of(step, plan)
            if (stage := self._stage(plan)) != shown:
                reporter().stage(stage)
                shown, pause = stage, _MIN_PAUSE
            if (dollars := cost_now()) is not None:
                reporter().say(**{"cost so far": f"${dollars:,.2f}"})
            reporter().tick()
            time.sleep(pause)
            pause = min(pause * 1.2, _MAX_PAUSE)

    def _stage(self, plan: Plan) -> str:
        for address, stage in ((plan.choice, "encode and merge"), (f"{plan.texts}/", "deduplicate")):
            if any(True for _ in list_objects(self.s3, place_of(address), 1)):
                return stage
        return "read reviews"

    def _end(self) -> str | None:
        status = clusters.status_of(self._emr, self.id)
        if status["State"] not in clusters.ENDED:
            return None
        return status.get("StateChangeReason", {}).get("Message") or f"state {status['State']}"

    def _failure_of(self, step: "StepTypeDef", plan: Plan) -> Exception:
        if sentence := read_text(self.s3, place_of(plan.failure)):
            return DataError(sentence)
        if end := self._end():
            return ShoalError(f"the cluster {self.id} terminated ({end}); its log is in {self._logs}")
        status = step["Status"]
        log = S3Path(self._logs.bucket, f"{self._logs.key}steps/{step['Id']}/")
        details = status.get("FailureDetails", {})
        reason = (
            details.get("Message")
            or details.get("Reason")
            or status.get("StateChangeReason", {}).get("Message")
            or "no reason given"
        )
        return ShoalError(
            f"the step '{step['Name']}' ended as {status['State']}: {reason}; after some minutes its log is in "
            f"{log}, and the logs of its tasks in {self._logs}containers/"
        )
