"""Arguments of the step that runs the preprocessing jobs on a cluster."""

from itertools import pairwise

import pytest

from bootstrap.node.documents import Cancellation
from infra import catalog
from shoal.preprocessing.step_arguments import WorkerResources, step_arguments, workers
from tests.jobs.piles import plan_in

MASTER = "yarn.app.mapreduce.am.resource"


def arguments(resources: WorkerResources, part_bits: int = 10) -> list[str]:
    launch = Cancellation(run="0123456789ab", token="0a1b2c3d")
    return step_arguments(
        plan_in("s3://data/work/1", part_bits=part_bits), cancellation=launch, bucket="data", resources=resources
    )


def properties(resources: WorkerResources, part_bits: int = 10) -> dict[str, str]:
    words = arguments(resources, part_bits)
    return dict(value.split("=", 1) for name, value in pairwise(words) if name == "-D")


def test_the_step_runs_the_command_of_the_primary_node_until_it_is_cancelled() -> None:
    words = arguments(WorkerResources(vcpus=6, task_mb=2816))
    assert words[:4] == ["shoal-step", "data", "0123456789ab", "0a1b2c3d"]
    assert words[4:7] == ["shoal-preprocess", "s3://data/work/1/shoal-plan.json", "s3://data/work/1/result"]
    assert not any("\n" in word for word in words)


@pytest.mark.parametrize(("bits", "reducers"), [(2, "4"), (10, "6")])
def test_there_is_a_reducer_for_each_vcpu_but_not_more_than_parts(bits: int, reducers: str) -> None:
    assert properties(WorkerResources(vcpus=6, task_mb=2816), bits)["mapreduce.job.reduces"] == reducers


@pytest.mark.parametrize("kind", [name for name, kind in catalog.catalog().types.items() if kind.runs_emr])
def test_every_type_has_memory_for_tasks_and_small_ones_for_one_on_each_vcpu(kind: str) -> None:
    node = catalog.find(kind)
    chosen, yarn = properties(workers({node: 1})), 0.75 * 1024 * node.memory
    task, master = (int(chosen[f"{name}.mb"]) for name in ("mapreduce.map.memory", MASTER))
    assert task + master <= yarn
    if kind in ("m4.xlarge", "m5.xlarge", "m5.2xlarge", "m7g.xlarge"):
        assert node.vcpu * task + master <= yarn < (node.vcpu + 1) * task + master
    heap = int(chosen["mapreduce.map.java.opts"].removeprefix("-Xmx").removesuffix("m"))
    assert heap + 300 < task  # Python takes this much


def test_the_smallest_of_several_kinds_of_nodes_decides_how_large_tasks_are() -> None:
    small, large = catalog.find("m5.xlarge"), catalog.find("r7g.xlarge")
    assert workers({small: 1, large: 3}).task_mb == workers({small: 1}).task_mb
    assert workers({small: 1, large: 3}).vcpus == small.vcpu + 3 * large.vcpu
