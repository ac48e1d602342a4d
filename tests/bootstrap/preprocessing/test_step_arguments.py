"""The arguments of jobs on a cluster: the steps of this machine, for Hadoop Streaming and for Spark."""

import json
import shlex
from collections.abc import Callable
from itertools import pairwise

import pytest

from bootstrap.agent.documents import step_name
from bootstrap.preprocessing.step_arguments import (
    command_arguments,
    spark_arguments,
    streaming_arguments,
    workers,
)
from common.errors import ShoalError
from corpus.dataset_settings import Settings
from embedded.hadoop.tasks import split_arguments
from infra import catalog
from jobs.steps import CommandStep, JobStep, Plan

MASTER = "yarn.app.mapreduce.am.resource"
WORK = "s3://data/pile/1"
NODES = workers({catalog.find("m5.xlarge"): 2})
EMR_TYPES = [name for name, kind in catalog.catalog().types.items() if kind.runs_emr]
YARN_STEP_MB = 32
SPARK_MASTER_MB = 512 + 384


def plan(**settings: object) -> Plan:
    return Plan(
        tasks=[b"[]"] * 3,
        work=WORK,
        output="s3://data/datasets",
        settings=Settings(**settings),
        input_bytes=10**9,
    )


def said(arguments: Callable[..., list[str]] = streaming_arguments, **settings: object) -> dict[str, list[str]]:
    return {
        step.name: arguments(step, reducers=6, run="run1", resources=NODES)
        for step in plan(**settings).steps()
        if isinstance(step, JobStep)
    }


def values(arguments: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(arguments) if name == option]


def test_each_job_reads_what_was_written_for_it_or_by_the_one_before() -> None:
    made = said()
    assert values(made["deduplicate"], "-input") == [f"{WORK}/to-read"]
    assert values(made["count words"], "-input") == values(made["deduplicate"], "-output")
    assert values(made["encode"], "-input") == [f"{WORK}/to-encode"]


def test_a_file_is_a_task_and_a_line_ends_at_newline_alone() -> None:
    for arguments in said().values():
        assert arguments[0] == "hadoop-streaming"
        assert {
            "textinputformat.record.delimiter=\n",
            f"mapreduce.input.fileinputformat.split.minsize={1 << 40}",
        } <= set(values(arguments, "-D"))


def test_the_number_of_reducers_is_as_requested_and_zero_without_a_reduce_step() -> None:
    made = said()
    for name in ("deduplicate", "count words"):
        assert "mapreduce.job.reduces=6" in values(made[name], "-D")
        assert values(made[name], "-reducer")
    assert "mapreduce.job.reduces=0" in values(made["encode"], "-D")
    assert not values(made["encode"], "-reducer")


def test_generic_options_come_first_as_hadoop_requires() -> None:
    for arguments in said().values():
        generic = [index for index, argument in enumerate(arguments) if argument in ("-D", "-files")]
        assert max(generic) < arguments.index("-mapper")


def test_tasks_run_the_job_with_the_settings() -> None:
    for kind in ("mapper", "reducer"):
        (command,) = values(said(row_length=7)["deduplicate"], f"-{kind}")
        words = split_arguments(command)
        assert words[:5] == ["shoal-python", "-m", "jobs.deduplicate", "--step-num=0", f"--{kind}"]
        assert {"--row-length=7", f"--distinct={WORK}/distinct"} <= set(words)


def test_files_travel_with_the_tasks_under_the_name_in_their_arguments() -> None:
    encode = said(stopwords=f"{WORK}/stopwords.txt")["encode"]
    assert values(encode, "-files") == [f"{WORK}/choice.json#choice.txt,{WORK}/stopwords.txt#stopwords.txt"]
    words = split_arguments(values(encode, "-mapper")[0])
    assert {"--choice=choice.txt", "--stopwords=stopwords.txt"} <= set(words)


@pytest.mark.parametrize("label", ["very good", "it's", 'the "best"', "$1", "'\"", "sehr schön"])
def test_a_label_reaches_the_tasks_unchanged(label: str) -> None:
    deduplicate = said(labelled=True, positive_label=label)["deduplicate"]
    words = split_arguments(values(deduplicate, "-mapper")[0])
    (given,) = (word.partition("=")[2] for word in words if word.startswith("--positive-label="))
    assert json.loads(given) == label


def test_names_of_classes_reach_the_tasks_unchanged() -> None:
    classes = ("arts & crafts", "it's", 'the "best"')
    made = said(ragged=True, words="tokens", duplicates=True, labelled=True, classes=classes)["deduplicate"]
    words = split_arguments(values(made, "-mapper")[0])
    (given,) = (word.partition("=")[2] for word in words if word.startswith("--classes="))
    assert tuple(json.loads(given)) == classes
    assert {"--rows=ragged", "--words=tokens", "--keep-duplicates"} <= set(words)


@pytest.mark.parametrize("arguments", [streaming_arguments, spark_arguments])
def test_names_of_classes_that_a_step_cannot_take_are_refused(arguments: Callable[..., list[str]]) -> None:
    names = tuple(f"{number:050}" for number in range(256))
    with pytest.raises(ShoalError, match="the names of the classes are too long"):
        said(arguments, ragged=True, labelled=True, classes=names)


def test_a_word_that_hadoop_cannot_pass_on_is_refused() -> None:
    quoted = Plan(tasks=[], work='s3://data/it\'s "work"', output="s3://data/datasets", input_bytes=1)
    with pytest.raises(ShoalError, match="both kinds of quotes"):
        streaming_arguments(quoted.steps()[0], reducers=1, run="1", resources=NODES)


@pytest.mark.parametrize("kind", ["m4.xlarge", "m5.xlarge", "m5.2xlarge", "m7g.xlarge"])
def test_a_node_runs_a_task_on_each_vcpu_beside_the_application_master(kind: str) -> None:
    node = catalog.find(kind)
    resources = workers({node: 1})
    yarn = 0.75 * 1024 * node.memory
    arguments = streaming_arguments(plan().steps()[0], reducers=1, run="1", resources=resources)
    properties = dict(each.split("=", 1) for each in values(arguments, "-D"))
    task, master = (int(properties[f"{name}.mb"]) for name in ("mapreduce.map.memory", MASTER))
    assert node.vcpu * task + master <= yarn < (node.vcpu + 1) * task + master
    heap = int(properties["mapreduce.map.java.opts"].removeprefix("-Xmx").removesuffix("m"))
    assert heap + 300 < task  # Python takes so much


@pytest.mark.parametrize("kind", EMR_TYPES)
def test_every_type_has_room_for_tasks_beside_the_application_master(kind: str) -> None:
    node = catalog.find(kind)
    resources = workers({node: 1})
    yarn = 0.75 * 1024 * node.memory
    arguments = streaming_arguments(plan().steps()[0], reducers=1, run="1", resources=resources)
    properties = dict(each.split("=", 1) for each in values(arguments, "-D"))
    task, master = (int(properties[f"{name}.mb"]) for name in ("mapreduce.map.memory", MASTER))
    assert task + master <= yarn
    arguments = spark_arguments(plan().steps()[0], reducers=1, run="1", resources=resources)
    settings = dict(each.split("=", 1) for each in values(arguments, "--conf"))
    assert 1 <= int(settings["spark.executor.cores"]) <= node.vcpu
    heap, beside = (int(settings[f"spark.executor.{name}"][:-1]) for name in ("memory", "memoryOverhead"))
    executor = -(-(heap + beside) // YARN_STEP_MB) * YARN_STEP_MB
    assert executor + SPARK_MASTER_MB <= yarn


def test_an_executor_fits_on_the_smallest_of_several_kinds_of_nodes() -> None:
    large, short = catalog.find("r7g.4xlarge"), catalog.find("c7g.xlarge")
    assert workers({large: 2, short: 1}).cores == workers({short: 1}).cores < short.vcpu


def test_the_smallest_node_decides_how_large_a_task_is() -> None:
    small, large = catalog.find("m5.xlarge"), catalog.find("r7g.xlarge")
    assert workers({small: 1, large: 3}).task_mb == workers({small: 1}).task_mb
    assert workers({small: 1, large: 3}).vcpus == small.vcpu + 3 * large.vcpu


def test_spark_runs_the_same_job_with_the_same_arguments() -> None:
    made = said(spark_arguments)
    for step in plan().steps():
        if isinstance(step, CommandStep):
            continue
        arguments = made[step.name]
        start = arguments.index(f"{step.module}.{step.job}")
        assert arguments[start + 1 : start + 3] == [",".join(step.inputs), step.output]
        assert set(step.arguments) <= set(shlex.split(values(arguments, "--job-args")[0]))
        assert values(arguments, "--num-reducers") == (["6"] if step.reduces else [])


def test_sparks_tasks_open_the_files_themselves() -> None:
    made = said(spark_arguments, stopwords=f"{WORK}/stopwords.txt")
    for name, files in {
        "deduplicate": {f"--stopwords={WORK}/stopwords.txt"},
        "encode": {f"--choice={WORK}/choice.json", f"--stopwords={WORK}/stopwords.txt"},
    }.items():
        assert files <= set(shlex.split(values(made[name], "--job-args")[0]))
        assert "--files" not in made[name]


def test_spark_takes_the_python_that_has_shoals_code_in_the_driver_and_in_the_executors() -> None:
    for arguments in said(spark_arguments).values():
        python = "/usr/local/bin/shoal-python"
        assert {f"spark.pyspark.python={python}", f"spark.pyspark.driver.python={python}"} <= set(
            values(arguments, "--conf")
        )
        assert values(arguments, "--master") == ["yarn"]


def test_jobs_are_found_on_yarn_by_the_name_of_the_work() -> None:
    assert "mapreduce.job.name=shoal run1: encode" in values(said()["encode"], "-D")
    assert values(said(spark_arguments)["encode"], "--name") == ["shoal run1: encode"]
    assert step_name("run1", "encode") == "shoal run1: encode"


def test_a_step_of_one_process_writes_an_error_of_the_data_to_an_address() -> None:
    merge = plan().steps()[-1]
    assert isinstance(merge, CommandStep)
    arguments = command_arguments(merge, "s3://data/pile/1/failure.txt")
    assert arguments[:3] == ["shoal-python", "-m", "jobs.merge"]
    assert arguments[-1] == "--failure=s3://data/pile/1/failure.txt"


def test_the_number_of_parts_grows_with_the_input() -> None:
    def bits(size: int) -> int:
        return Plan(tasks=[], work="w", output="o", input_bytes=size).part_bits

    assert [bits(size) for size in (0, 1, 10**9, 10**10, 10**11, 10**15)] == [3, 3, 3, 7, 10, 16]
