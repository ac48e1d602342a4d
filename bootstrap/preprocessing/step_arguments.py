"""The arguments of EMR steps: Hadoop Streaming jobs, Spark jobs and plain commands.

Do not quote words as for a shell, because Streaming splits a command in its own way: two adjacent quoted words stay two
words.
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
"""mrjob's own way to run a job on Spark, where bootstrap/preprocessing/emr/install.sh puts it."""

# On EMR, YARN has three quarters of a node's memory, and one node also runs the job's application master.
_YARN_SHARE = 0.75
_MASTER_MB = 1024
# A task is a JVM that moves blocks of some megabytes, and beside it Python, which takes under 300 MB, with a full
# vocabulary under 700.
_HEAP_MB = 768
_LEAST_TASK_MB = 1536
_MOST_CORES = 4
# By EMR's interface. Only the names of classes can be so long.
_MOST_LETTERS = 10_280


@dataclass(frozen=True, kw_only=True)
class WorkerResources:
    """The resources of the nodes that map and reduce.

    vcpus: of all of them.
    cores: an executor's, so that one fits on each node beside the application master.
    task_mb: memory for each task, and for each core of an executor: when there is one on every vCPU, or more where
        that would be too little; some vCPUs then have no task of their own.
    """

    vcpus: int
    cores: int
    task_mb: int


def workers(nodes: Mapping[InstanceType, int]) -> WorkerResources:
    free = {kind: int(_YARN_SHARE * 1024 * kind.memory) - _MASTER_MB for kind in nodes}
    task_mb = max(_LEAST_TASK_MB, min(free[kind] // kind.vcpu for kind in nodes) // 64 * 64)
    return WorkerResources(
        vcpus=sum(kind.vcpu * count for kind, count in nodes.items()),
        cores=min(_MOST_CORES, *(min(kind.vcpu, free[kind] // task_mb) for kind in nodes)),
        task_mb=task_mb,
    )


def streaming_arguments(step: JobStep, *, reducers: int, run: str, resources: WorkerResources) -> list[str]:
    """The arguments of Hadoop Streaming for a job; `reducers` is the number of reduce tasks, `run` names the work."""
    names = {option: f"{option.lstrip('-')}.txt" for option in step.files}
    files = ",".join(f"{step.files[option]}#{name}" for option, name in names.items())
    arguments = [*step.arguments, *(f"{option}={name}" for option, name in names.items())]

    def task(kind: str) -> str:
        words = ["shoal-python", "-m", step.module, "--step-num=0", f"--{kind}", *arguments]
        return _fitting(" ".join(map(_quoted, words)))

    properties = {
        "mapreduce.job.name": step_name(run, step.name),
        "mapreduce.job.reduces": reducers if step.reduces else 0,
        # A file is one task: those of the first job hold a line each, and those of the others are a reducer's.
        "mapreduce.input.fileinputformat.split.minsize": 1 << 40,
        # A line ends at \n alone; Hadoop's default also ends it at \r.
        "textinputformat.record.delimiter": "\n",
        "mapreduce.map.memory.mb": resources.task_mb,
        "mapreduce.reduce.memory.mb": resources.task_mb,
        "mapreduce.map.java.opts": f"-Xmx{_HEAP_MB}m",
        "mapreduce.reduce.java.opts": f"-Xmx{_HEAP_MB}m",
        "mapreduce.task.io.sort.mb": _HEAP_MB // 4,
        # EMR gives the application master half a node, which would leave the vCPUs of small clusters idle.
        "yarn.app.mapreduce.am.resource.mb": _MASTER_MB,
        "yarn.app.mapreduce.am.command-opts": f"-Xmx{_MASTER_MB * 3 // 4}m",
        # Blocks are base64 of packed numbers, of which Snappy takes away a twelfth.
        "mapreduce.map.output.compress": "false",
        # A reducer that waits for the last mappers holds memory in which one of them could run.
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
    """The arguments of `spark-submit` for a job, by mrjob's harness; the tasks open the step's files themselves."""
    settings = {
        "spark.pyspark.python": PYTHON,
        "spark.pyspark.driver.python": PYTHON,
        "spark.executor.cores": resources.cores,
        # Python's memory is beside the heap.
        "spark.executor.memory": f"{resources.cores * resources.task_mb * 2 // 5}m",
        "spark.executor.memoryOverhead": f"{resources.cores * resources.task_mb * 3 // 5}m",
        "spark.hadoop.mapreduce.input.fileinputformat.split.minsize": 1 << 40,
    }
    files = (f"{option}={address}" for option, address in step.files.items())
    return [
        *("spark-submit", "--master", "yarn", "--deploy-mode", "client", "--name", step_name(run, step.name)),
        *(argument for name, value in settings.items() for argument in ("--conf", f"{name}={value}")),
        *(HARNESS, f"{step.module}.{step.job}", ",".join(step.inputs), step.output),
        *("--job-args", _fitting(shlex.join([*step.arguments, *files]))),
        *(("--num-reducers", str(reducers)) if step.reduces else ()),
    ]


def command_arguments(step: CommandStep, failure: str) -> list[str]:
    """The command of a step of one process; it writes an error of the data to the address `failure`."""
    return ["shoal-python", "-m", step.module, *step.arguments, f"--failure={failure}"]


def cancellable(arguments: Sequence[str], bucket: str, cancellation: Cancellation) -> list[str]:
    """The arguments of a step that ends when its cancellation is in the bucket."""
    return ["shoal-step", bucket, cancellation.run, cancellation.token, *arguments]


def _fitting(argument: str) -> str:
    """The argument. Raises ShoalError where EMR would refuse it for its length."""
    if len(argument) > _MOST_LETTERS:
        raise ShoalError(
            f"the names of the classes are too long: with them an argument of a step has {len(argument):,} letters, "
            f"and EMR takes at most {_MOST_LETTERS:,}; give shorter labels"
        )
    return argument


def _quoted(word: str) -> str:
    """A word that Streaming reads as one word. Raises ShoalError for a word with both kinds of quotes."""
    if word and not set(word) & set(" '\""):
        return word
    for quote in ("'", '"'):
        if quote not in word:
            return f"{quote}{word}{quote}"
    raise ShoalError(f"{word} has both kinds of quotes, which Hadoop Streaming cannot pass on; leave out one kind")
