"""Command-line arguments of the EMR step that runs the preprocessing jobs."""

from collections.abc import Mapping
from dataclasses import dataclass

from bootstrap.node.documents import Cancellation
from common.names import step_name
from corpus.reading.storage import join
from infra.catalog import InstanceType
from jobs.plan import PLAN_NAME, Plan

COMMAND = "shoal-preprocess"
"""Command of the primary node (bootstrap/emr/preprocess.sh)."""

# On EMR, YARN can use three quarters of a node's memory. One node also runs the job's application master.
_YARN_SHARE = 0.75
_MASTER_MB = 1024
# A task is a JVM that moves blocks of some megabytes, and a Python process. The Python process needs less than 300 MB,
# or less than 700 MB with a full vocabulary.
_HEAP_MB = 768
_MIN_TASK_MB = 1536


@dataclass(frozen=True, kw_only=True)
class WorkerResources:
    """Resources of the nodes that run map and reduce tasks.

    vcpus: Total number of vCPUs of these nodes.
    task_mb: Memory in MB for each task: a node's memory divided by its vCPUs, but at least a minimum. Where the minimum
        applies, fewer tasks than vCPUs run at the same time.
    """

    vcpus: int
    task_mb: int


def workers(nodes: Mapping[InstanceType, int]) -> WorkerResources:
    free = {kind: int(_YARN_SHARE * 1024 * kind.memory) - _MASTER_MB for kind in nodes}
    return WorkerResources(
        vcpus=sum(kind.vcpu * count for kind, count in nodes.items()),
        task_mb=max(_MIN_TASK_MB, min(free[kind] // kind.vcpu for kind in nodes) // 64 * 64),
    )


def step_arguments(plan: Plan, *, cancellation: Cancellation, bucket: str, resources: WorkerResources) -> list[str]:
    """Return the arguments of the step that carries out the plan.

    The step stops its work once `cancellation` is written to the bucket.
    """
    properties = {
        "mapreduce.job.name": step_name(cancellation.run, "preprocess"),
        "mapreduce.job.reduces": min(resources.vcpus, 1 << plan.part_bits),
        "mapreduce.map.memory.mb": resources.task_mb,
        "mapreduce.reduce.memory.mb": resources.task_mb,
        "mapreduce.map.java.opts": f"-Xmx{_HEAP_MB}m",
        "mapreduce.reduce.java.opts": f"-Xmx{_HEAP_MB}m",
        "mapreduce.task.io.sort.mb": _HEAP_MB // 4,
        # By default, EMR reserves half a node for the application master, which would leave vCPUs of small clusters
        # idle.
        "yarn.app.mapreduce.am.resource.mb": _MASTER_MB,
        "yarn.app.mapreduce.am.command-opts": f"-Xmx{_MASTER_MB * 3 // 4}m",
    }
    options = [word for name, value in properties.items() for word in ("-D", f"{name}={value}")]
    launch = ["shoal-step", bucket, cancellation.run, cancellation.token]
    return [*launch, COMMAND, join(plan.work, PLAN_NAME), plan.result, *options]
