"""Arguments of jobs on a cluster: the steps of this machine, for Hadoop Streaming and for Spark."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from shoal_local_aws.hadoop.tasks import split_arguments

from bootstrap.preprocessing.step_arguments import command_arguments, spark_arguments, streaming_arguments, workers
from common.errors import ShoalError
from corpus.dataset_settings import Settings
from infra import catalog
from jobs.steps import CommandStep, JobStep, Plan

MASTER = "yarn.app.mapreduce.am.resource"
WORK = "s3://data/pile/1"
NODES = workers({catalog.find("m5.xlarge"): 2})
TABLE = yaml.safe_load(Path(__file__).with_name("step_arguments.yaml").read_text())
YARN_STEP_MB = 32
SPARK_MASTER_MB = 512 + 384


def plan(**settings):
    return Plan(
        tasks=[b"[]"] * 3, work=WORK, output="s3://data/datasets", settings=Settings(**settings), input_bytes=10**9
    )


def job_arguments(arguments=streaming_arguments, **settings):
    jobs = (step for step in plan(**settings).steps() if isinstance(step, JobStep))
    return {step.name: arguments_of(step, arguments) for step in jobs}


def values(arguments, option):
    return [value for name, value in pairwise(arguments) if name == option]


def arguments_of(step, runner):
    if isinstance(step, CommandStep):
        return command_arguments(step, f"{WORK}/failure.txt")
    return runner(step, reducers=6, run="run1", resources=NODES)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["settings"]))
@pytest.mark.parametrize("runner", [streaming_arguments, spark_arguments])
def test_the_steps_of_a_plan_are_these(row, runner):
    made = {step.name: arguments_of(step, runner) for step in plan(**row["settings"]).steps()}
    jobs = row["spark" if runner is spark_arguments else "streaming"]
    assert made == {**jobs, **row["commands"]}


CLASSES = {"ragged": True, "words": "tokens", "duplicates": True}


@pytest.mark.parametrize(
    "label", ["very good", "it's", 'the "best"', "$1", "'\"", "sehr schön", ["arts & crafts", "it's", "x"]]
)
def test_labels_and_classes_reach_the_tasks_unchanged(label):
    labels = {"positive_label": label} if isinstance(label, str) else {**CLASSES, "classes": tuple(label)}
    words = split_arguments(values(job_arguments(labelled=True, **labels)["deduplicate"], "-mapper")[0])
    (settings,) = (word.partition("=")[2] for word in words if word.startswith("--settings="))
    assert json.loads(settings)["positive_label" if isinstance(label, str) else "classes"] == label


@pytest.mark.parametrize("arguments", [streaming_arguments, spark_arguments])
def test_class_names_that_are_too_long_for_a_step_are_refused(arguments, messages):
    names = tuple(f"{number:050}" for number in range(256))
    with messages.raises(ShoalError):
        job_arguments(arguments, ragged=True, labelled=True, classes=names)


def test_a_word_with_both_kinds_of_quotes_is_refused(messages):
    quoted = Plan(tasks=[], work='s3://data/it\'s "work"', output="s3://data/datasets", input_bytes=1)
    with messages.raises(ShoalError):
        streaming_arguments(quoted.steps()[0], reducers=1, run="1", resources=NODES)


@pytest.mark.parametrize("kind", [name for name, kind in catalog.catalog().types.items() if kind.runs_emr])
def test_every_type_has_memory_for_tasks_and_small_ones_for_one_on_each_vcpu(kind):
    node = catalog.find(kind)
    step, resources, yarn = plan().steps()[0], workers({node: 1}), 0.75 * 1024 * node.memory
    arguments = streaming_arguments(step, reducers=1, run="1", resources=resources)
    properties = dict(each.split("=", 1) for each in values(arguments, "-D"))
    task, master = (int(properties[f"{name}.mb"]) for name in ("mapreduce.map.memory", MASTER))
    assert task + master <= yarn
    if kind in ("m4.xlarge", "m5.xlarge", "m5.2xlarge", "m7g.xlarge"):
        assert node.vcpu * task + master <= yarn < (node.vcpu + 1) * task + master
    heap = int(properties["mapreduce.map.java.opts"].removeprefix("-Xmx").removesuffix("m"))
    assert heap + 300 < task  # Python takes this much
    settings = dict(
        each.split("=", 1) for each in values(spark_arguments(step, reducers=1, run="1", resources=resources), "--conf")
    )
    assert 1 <= int(settings["spark.executor.cores"]) <= node.vcpu
    heap, extra_files = (int(settings[f"spark.executor.{name}"][:-1]) for name in ("memory", "memoryOverhead"))
    executor = -(-(heap + extra_files) // YARN_STEP_MB) * YARN_STEP_MB
    assert executor + SPARK_MASTER_MB <= yarn


def test_the_smallest_of_several_kinds_of_nodes_decides_how_large_tasks_and_executors_are():
    large, short = catalog.find("r7g.4xlarge"), catalog.find("c7g.xlarge")
    assert workers({large: 2, short: 1}).cores == workers({short: 1}).cores < short.vcpu
    small, large = catalog.find("m5.xlarge"), catalog.find("r7g.xlarge")
    assert workers({small: 1, large: 3}).task_mb == workers({small: 1}).task_mb
    assert workers({small: 1, large: 3}).vcpus == small.vcpu + 3 * large.vcpu


def test_the_number_of_parts_grows_with_the_input():
    def bits(size):
        return Plan(tasks=[], work="w", output="o", input_bytes=size).part_bits

    assert [bits(size) for size in (0, 1, 10**9, 10**10, 10**11, 10**15)] == [3, 3, 3, 7, 10, 16]
