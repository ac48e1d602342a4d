"""A deployment's EMR cluster: submit steps, find them again, wait for them, cancel them, and say why one failed.

The easy mistake is to believe the step's log: EMR brings it to the bucket minutes after the step ended, and a
streaming task's own words never get into it. What a step wants its user to know it leaves at an address.
"""

import shlex
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import names, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.objects import Place
from bootstrap.aws.retry import Abandoned, retrying
from bootstrap.errors import ShoalError
from bootstrap.nodes.run_command import NodeCommand
from bootstrap.preprocessing.step_arguments import WorkerResources, step_name, workers
from bootstrap.progress import note
from corpus.errors import DataError
from infra import catalog, topology

if TYPE_CHECKING:
    from mypy_boto3_emr.type_defs import DescribeStepOutputTypeDef, StepConfigTypeDef

_ALIVE = ("STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING")
_GOING_ON = ("PENDING", "RUNNING", "CANCEL_PENDING")
_LOG_PATIENCE_SECONDS = 20
_CANCEL_SECONDS = 60
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
# Cancelling a step ends the process that submitted a job to YARN, not the job. A step that does so would wait for
# other runs' steps.
_KILL = """\
command -v yarn >/dev/null || exit 0
yarn application -list | grep -F {name} | awk '{{print $1}}' | xargs --no-run-if-empty yarn application -kill
"""


class EmrCluster:
    """The cluster of a deployment, alive. Raises ShoalError when it has ended."""

    def __init__(self, deployment: Deployment) -> None:
        self._session = deployment.session
        self._s3 = deployment.session.client("s3")
        self._emr = deployment.session.client("emr")
        self._logs = deployment.output(topology.OUTPUT_LOG_BUCKET)
        self.id = deployment.output(topology.OUTPUT_CLUSTER_ID)
        if end := self._end():
            raise ShoalError(
                f"the cluster {self.id} has ended ({end}); `shoal deploy {deployment.topology} --deployment "
                f"{deployment.name}` brings a new one and leaves the buckets alone"
            )

    def workers(self) -> WorkerResources:
        """What the nodes that map and reduce have: core and task nodes, or the primary one where it is alone."""
        groups = self._emr.list_instance_groups(ClusterId=self.id)["InstanceGroups"]
        working = [group for group in groups if group["InstanceGroupType"] != "MASTER"] or groups
        nodes: Counter[catalog.InstanceType] = Counter()
        for group in working:
            nodes[catalog.find(group["InstanceType"])] += group["RequestedInstanceCount"]
        return workers(nodes)

    def going_on(self, prefix: str) -> dict[str, str]:
        """The ids of the steps that wait or run and whose names begin with `prefix`, by the rest of the name."""
        pages = self._emr.get_paginator("list_steps").paginate(ClusterId=self.id, StepStates=["PENDING", "RUNNING"])
        found = {step["Name"]: step["Id"] for page in pages for step in page["Steps"]}
        return {name.removeprefix(prefix): found[name] for name in found if name.startswith(prefix)}

    def submit(self, steps: Sequence["StepConfigTypeDef"]) -> list[str]:
        """Hand over steps, which run in this order; returns their ids."""
        return self._emr.add_job_flow_steps(JobFlowId=self.id, Steps=steps)["StepIds"]

    @contextmanager
    def cancelling(self, ids: Collection[str], run: str) -> Iterator[None]:
        """What is left of these steps is cancelled on leaving by an error, unless it is that AWS cannot be reached.

        `run` is in the names of the jobs that the steps give to YARN. Raises Abandoned when the user does not wait
        until AWS answers, so that they could be cancelled: they go on.
        """
        try:
            yield
        except (BotoCoreError, ClientError):
            raise  # the cluster works on, and whoever comes back finds the steps
        except BaseException:
            try:
                if retrying.unanswered:
                    note("the steps are cancelled as soon as AWS answers; Ctrl-C again leaves at once, and they go on")
                self._cancel(ids, run)
            except KeyboardInterrupt as asked:
                raise Abandoned(asked) from None
            raise

    def wait(self, step_id: str, failure: Place, tick: Callable[[], None]) -> None:
        """Return when a step has completed; `tick` is called now and then.

        Raises DataError with what it left at the address `failure`, or else ShoalError with what EMR and its log say.
        """
        pause = _FIRST_PAUSE
        while True:
            step = retrying(partial(self._emr.describe_step, ClusterId=self.id, StepId=step_id))
            state = step["Step"]["Status"]["State"]
            if state == "COMPLETED":
                return
            if state not in _GOING_ON:
                raise self._explained(step, failure)
            tick()
            time.sleep(pause)
            pause = min(pause * 1.2, _LONGEST_PAUSE)

    def _end(self) -> str | None:
        """Why the cluster has ended; nothing while it lives."""
        status = self._emr.describe_cluster(ClusterId=self.id)["Cluster"]["Status"]
        if status["State"] in _ALIVE:
            return None
        return status.get("StateChangeReason", {}).get("Message") or f"state {status['State']}"

    def _explained(self, step: "DescribeStepOutputTypeDef", failure: Place) -> Exception:
        if sentence := objects.read_text(self._s3, failure):
            return DataError(sentence)
        if end := self._end():
            return ShoalError(f"the cluster {self.id} ended ({end}); its log is in s3://{self._logs}/emr/{self.id}/")
        status = step["Step"]["Status"]
        log = Place(self._logs, f"emr/{self.id}/steps/{step['Step']['Id']}/")
        details = status.get("FailureDetails", {})
        said = (
            self._last_words(log)
            or details.get("Message")
            or details.get("Reason")
            or status.get("StateChangeReason", {}).get("Message")
            or "no reason given"
        )
        return ShoalError(
            f"the step '{step['Step']['Name']}' ended as {status['State']}: {said}; its log (after some minutes): "
            f"{log}, and those of its tasks: s3://{self._logs}/emr/{self.id}/containers/"
        )

    def _last_words(self, log: Place) -> str | None:
        """The last line of a step's standard error, if the log bucket has it soon."""
        place = Place(log.bucket, f"{log.key}stderr.gz")
        deadline = time.monotonic() + _LOG_PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if packed := objects.read_from(self._s3, place, 0):
                lines = objects.unpacked(packed).splitlines()
                return lines[-1] if lines else None
            time.sleep(2)
        return None

    def _cancel(self, ids: Collection[str], run: str) -> None:
        """End what is left of the steps, and wait until they write no more."""
        if not (states := self._unfinished(ids)):
            return
        cancel = partial(self._emr.cancel_steps, ClusterId=self.id, StepIds=list(states))
        retrying(partial(cancel, StepCancellationOption="TERMINATE_PROCESS"))
        deadline = time.monotonic() + _CANCEL_SECONDS
        while self._unfinished(ids) and time.monotonic() < deadline:
            time.sleep(_FIRST_PAUSE)
        if set(states.values()) != {"PENDING"}:
            nodes = self._emr.list_instances(
                ClusterId=self.id, InstanceGroupTypes=["MASTER"], InstanceStates=["RUNNING"]
            )
            for node in nodes["Instances"]:
                NodeCommand(self._session, node["Ec2InstanceId"], _kill(run)).wait()

    def _unfinished(self, ids: Collection[str]) -> dict[str, str]:
        """The states of those steps that have not ended, by their ids."""
        described = {each: retrying(partial(self._emr.describe_step, ClusterId=self.id, StepId=each)) for each in ids}
        states = {each: step["Step"]["Status"]["State"] for each, step in described.items()}
        return {each: state for each, state in states.items() if state in _GOING_ON}


def _kill(run: str) -> str:
    """The script that ends a run's applications. Raises ShoalError for what is no run's name."""
    return _KILL.format(name=shlex.quote(step_name(names.work(run), "")))
