"""Runs the pipeline as on a cluster: every step with the arguments for EMR, on the embedded Hadoop Streaming."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shoal_local_aws.faults.kinds import AttemptFaults
from shoal_local_aws.hadoop.streaming import attempt_faults_environment
from shoal_local_aws.hadoop.yarn import LOGS

from bootstrap.preprocessing.step_arguments import WorkerResources, command_arguments, streaming_arguments
from corpus.dataset_settings import REFERENCE, Settings
from corpus.reading.s3 import is_s3
from corpus.reading.sources import Inputs
from corpus.reading.storage import exists, join, write_text
from jobs.merge import MergeResult, read_merge_result
from jobs.preparation import prepare_work
from jobs.steps import CommandStep, JobStep, Plan

_ROOT = Path(__file__).resolve().parents[2]


class StepError(Exception):
    """Failure of a step, with its name and its output."""


class StreamingNode:
    """Emulated primary node of a cluster.

    `folder` is the root of its files, `faults` are those of Hadoop's tasks, and `environment` is added to that of this
    process for the processes of the node.
    """

    def __init__(
        self, folder: Path, *, faults: AttemptFaults | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        commands = folder / "usr" / "local" / "bin"
        commands.mkdir(parents=True, exist_ok=True)
        python = commands / "shoal-python"
        python.write_text(f'#!/bin/sh\nPYTHONPATH="{_ROOT}" exec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        self.logs = folder / LOGS
        self.said = folder / "said.txt"
        self._failure = folder / "failure.txt"
        self._environment = {
            **os.environ,
            **(environment or {}),
            **attempt_faults_environment(faults or AttemptFaults()),
            "NODE_ROOT": str(folder),
            "PATH": os.pathsep.join([str(commands), os.environ["PATH"]]),
            "PYTHONPATH": str(_ROOT),
        }

    def command(self, step: JobStep | CommandStep, *, reducers: int = 2, properties: Sequence[str] = ()) -> list[str]:
        """Return the command that runs a step. `properties` are additional Hadoop properties, each `NAME=VALUE`."""
        if isinstance(step, CommandStep):
            return command_arguments(step, str(self._failure))
        resources = WorkerResources(vcpus=reducers, cores=1, task_mb=1536)
        arguments = streaming_arguments(_with_schemes(step), reducers=reducers, run="here", resources=resources)[1:]
        more = [argument for each in properties for argument in ("-D", each)]
        return [sys.executable, "-m", "shoal_local_aws.hadoop.streaming", *more, *arguments]

    def start(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start a command. Its output goes to the file `said`."""
        with self.said.open("wb") as out:
            return subprocess.Popen(command, env=self._environment, stdout=out, stderr=out)

    def run(self, plan: Plan, *, reducers: int = 2, properties: Sequence[str] = ()) -> None:
        """Run the steps of a plan that are not yet done. Raises StepError."""
        if not is_s3(plan.work):
            Path(plan.work).mkdir(parents=True, exist_ok=True)
        for address, content in plan.task_files().items():
            write_text(address, content.decode())
        for step in plan.steps():
            if exists(step.done_file):
                continue
            if self.start(self.command(step, reducers=reducers, properties=properties)).wait():
                raise StepError(f"{step.name}: {self.said.read_text(errors='replace')}")


def planned(inputs: Inputs, folder: str, *, settings: Settings = REFERENCE, tasks: int = 4) -> Plan:
    """Return the plan for input in `folder`, a path or s3://..., with the results in `folder`/data."""
    prepared = prepare_work(inputs, settings, max_malformed=0.2)
    return prepared.plan(work=join(folder, prepared.name), output=join(folder, "data"), tasks=tasks)


def made(plan: Plan) -> MergeResult:
    return read_merge_result(plan.summary)


def _with_schemes(step: JobStep) -> JobStep:
    """Return the step with a scheme in each address, because Hadoop reads a path without one as a path in HDFS."""

    def uri(address: str) -> str:
        return address if is_s3(address) else Path(address).as_uri()

    return replace(
        step,
        inputs=tuple(map(uri, step.inputs)),
        output=uri(step.output),
        files={option: uri(address) for option, address in step.files.items()},
    )
