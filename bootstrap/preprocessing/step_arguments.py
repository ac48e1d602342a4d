"""Command-line arguments of EMR steps: Hadoop Streaming jobs, Spark jobs and plain commands.

Do not quote arguments as for a shell, because Hadoop Streaming splits a command in its own way. For example, it splits
two adjacent quoted strings into two arguments.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bootstrap.agent.documents import Cancellation, step_name
from common.errors import ShoalError
from infra.catalog import InstanceType
from jobs.steps import CommandStep, JobStep

PYTHON = "/usr/local/bin/shoal-python"
HARNESS = "/opt/shoal/venv/lib/python3.11/site-packages/mrjob/spark/harness.py"
"""Path of mrjob's program that runs a job on Spark. bootstrap/preprocessing/emr/install.sh installs it there."""

# On EMR, YARN can use three quarters of a node's memory. One node also runs the job's application master.
_YARN_SHARE = 0.75
_MASTER_MB = 1024
# A task is a JVM that moves blocks of some megabytes, and a Python process. The Python process needs less than 300 MB,
# or less than 700 MB with a full vocabulary.
_HEAP_MB = 768
_MIN_TASK_MB = 1536
_MAX_CORES = 4
# Maximum length of an argument in EMR's API. Only an argument with the names of classes can be longer.
_MAX_CHARACTERS = 10_280


@dataclass(frozen=True, kw_only=True)
class WorkerResources:
    """Resources of the nodes that run map and reduce tasks.

    vcpus: Total number of vCPUs of these nodes.
    cores: vCPUs per Spark executor, so that one executor fits on each node along with the application master.
    task_mb: Memory in MB for each Streaming task and for each core of an executor: a node's memory divided by its
        vCPUs, but at least a minimum. Where the minimum applies, fewer tasks than vCPUs run at the same time.
    """

    vcpus: int
    cores: int
    task_mb: int


def workers(nodes: Mapping[InstanceType, int]) -> WorkerResources:
    free = {kind: int(_YARN_SHARE * 1024 * kind.memory) - _MASTER_MB for kind in nodes}
    task_mb = max(_MIN_TASK_MB, min(free[kind] // kind.vcpu for kind in nodes) // 64 * 64)
    return WorkerResources(
        vcpus=sum(kind.vcpu * count for kind, count in nodes.items()),
        cores=min(_MAX_CORES, *(min(kind.vcpu, free[kind] // task_mb) for kind in nodes)),
        task_mb=task_mb,
    )


def streaming_arguments(step: JobStep, *, reducers: int, run: str, resources: WorkerResources) -> list[str]:
    """Return the arguments of Hadoop Streaming for a job. `reducers` is the number of reduce tasks, and `run` is the
    name of the preprocessing run."""
    names = {option: f"{option.lstrip('-')}.txt" for option in step.files}
    files = ",".join(f"{step.files[option]}#{name}" for option, name in names.items())
    arguments = [*step.arguments, *(f"{option}={name}" for option, name in names.items())]

    def task(kind: str) -> str:
        words = ["shoal-python", "-m", step.module, "--step-num=0", f"--{kind}", *arguments]
        return _within_limit(" ".join(map(_quoted, words)))

    properties = {
        "mapreduce.job.name": step_name(run, step.name),
        "mapreduce.job.reduces": reducers if step.reduces else 0,
        # Each file is one task. A file of the first job has one line, and a file of a later job is the output of one
        # reducer.
        "mapreduce.input.fileinputformat.split.minsize": 1 << 40,
        # Only \n ends a line. By default, Hadoop also ends a line at \r.
        "textinputformat.record.delimiter": "\n",
        "mapreduce.map.memory.mb": resources.task_mb,
        "mapreduce.reduce.memory.mb": resources.task_mb,
        "mapreduce.map.java.opts": f"-Xmx{_HEAP_MB}m",
        "mapreduce.reduce.java.opts": f"-Xmx{_HEAP_MB}m",
        "mapreduce.task.io.sort.mb": _HEAP_MB // 4,
        # By default, EMR reserves half a node for the application master, which would leave vCPUs of small clusters
        # idle.
        "yarn.app.mapreduce.am.resource.mb": _MASTER_MB,
        "yarn.app.mapreduce.am.command-opts": f"-Xmx{_MASTER_MB * 3 // 4}m",
        # Blocks are packed numbers in base64, which Snappy makes smaller by only a twelfth.
        "mapreduce.map.output.compress": "false",
        # A reducer that waits for the last mappers occupies memory in which a mapper could run.
        "mapreduce.job.reduce.slowstart.completedmaps": 0.95,
    }
    return [
        "hadoop-streaming",
        *(argument for name, value in properties.items() for argument in ("-D", f"{name}={value}")),
        *(("-files", files) if files else ()),
        *("-mapper", task("mapper")),
        *(("-reducer", task("reducer")) if step.reduces else ()),
        *(argument for address in step.inputs for argument in ("-input", address)),
        *("-output", step.output),
    ]


def spark_arguments(step: JobStep, *, reducers: int, run: str, resources: WorkerResources) -> list[str]:
    """Return the arguments of `spark-submit` that run a job with mrjob's harness. Tasks open the step's files by their
    S3 addresses."""
    settings = {
        "spark.pyspark.python": PYTHON,
        "spark.pyspark.driver.python": PYTHON,
        "spark.executor.cores": resources.cores,
        # Python's memory is outside the heap.
        "spark.executor.memory": f"{resources.cores * resources.task_mb * 2 // 5}m",
        "spark.executor.memoryOverhead": f"{resources.cores * resources.task_mb * 3 // 5}m",
        "spark.hadoop.mapreduce.input.fileinputformat.split.minsize": 1 << 40,
    }
    files = (f"{option}={address}" for option, address in step.files.items())
    return [
        *("spark-submit", "--master", "yarn", "--deploy-mode", "client", "--name", step_name(run, step.name)),
        *(argument for name, value in settings.items() for argument in ("--conf", f"{name}={value}")),
        *(HARNESS, f"{step.module}.{step.job}", ",".join(step.inputs), step.output),
        *("--job-args", _within_limit(shlex.join([*step.arguments, *files]))),
        *(("--num-reducers", str(reducers)) if step.reduces else ()),
    ]


def command_arguments(step: CommandStep, failure: str) -> list[str]:
    """Return the command of a step that is a single process. If its data is invalid, the process writes an error
    message to the address `failure`."""
    return ["shoal-python", "-m", step.module, *step.arguments, f"--failure={failure}"]


def cancellable(arguments: Sequence[str], bucket: str, cancellation: Cancellation) -> list[str]:
    """Return the arguments of a step that stops its command once `cancellation` is written to the bucket."""
    return ["shoal-step", bucket, cancellation.run, cancellation.token, *arguments]


def _within_limit(argument: str) -> str:
    """Return the argument unchanged. Raises ShoalError if the argument is too long for EMR."""
    if len(argument) > _MAX_CHARACTERS:
        raise ShoalError(
            f"the names of the classes are too long: an argument of a step has {len(argument):,} characters with them, "
            f"and EMR accepts at most {_MAX_CHARACTERS:,}; use shorter labels"
        )
    return argument


def _quoted(word: str) -> str:
    """Quote a word so that Hadoop Streaming reads it as one argument. Raises ShoalError if the word contains both
    single and double quotes."""
    if word and not set(word) & set(" '\""):
        return word
    for quote in ("'", '"'):
        if quote not in word:
            return f"{quote}{word}{quote}"
    raise ShoalError(f"{word} has both kinds of quotes, which Hadoop Streaming cannot pass on; use only one kind")
