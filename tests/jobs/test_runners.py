"""The jobs run on Hadoop Streaming and on real Spark, with the arguments of an EMR cluster."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from shoal_local_aws.faults.kinds import AttemptFaults

from benchmarks.real_reviews import REVIEWS
from bootstrap.demo.reviews import write_reviews
from bootstrap.preprocessing.step_arguments import HARNESS, PYTHON, WorkerResources, spark_arguments
from corpus.dataset_settings import Settings
from corpus.reading.sources import Inputs
from corpus.text import load_stopwords
from jobs.steps import JobStep, Plan
from tests import oracle
from tests.jobs.piles import NLTK, assert_dataset
from tests.jobs.streaming_node import StreamingNode, planned

ROOT = Path(__file__).resolve().parents[2]


def package(name: str) -> Path:
    return Path(find_spec(name).origin).parent


class Spark:
    """Runner of a plan's steps, with jobs by `spark-submit` on two executors, in a folder that emulates a cluster."""

    def __init__(self, folder: Path) -> None:
        home = folder / "spark"
        home.mkdir(parents=True)
        for part in package("pyspark").iterdir():  # executors write their logs below Spark's home
            (home / part.name).symlink_to(part)
        self._python = folder / "shoal-python"
        self._python.write_text(
            f'#!/bin/sh\nPYTHONPATH="{ROOT}${{PYTHONPATH:+:$PYTHONPATH}}" exec "{sys.executable}" "$@"\n'
        )
        self._python.chmod(0o755)
        self._node = StreamingNode(folder / "node")
        self._here = {
            PYTHON: str(self._python),
            HARNESS: str(package("mrjob") / "spark" / "harness.py"),
            "yarn": "local-cluster[2,1,1024]",
            "spark-submit": str(home / "bin" / "spark-submit"),
        }
        self._environment = {
            **os.environ,
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # halves the time of short programs
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
        }
        self._environment.pop("PYTHONPATH", None)
        self._said = folder / "said.txt"

    def arguments(self, step: JobStep, reducers: int) -> list[str]:
        """Return the arguments for a cluster, except the locations of the master, Python and mrjob."""
        given = spark_arguments(
            step, reducers=reducers, run="here", resources=WorkerResources(vcpus=2, cores=1, task_mb=1536)
        )
        for there, here in self._here.items():
            given = [here if word == there else word.replace(f"={there}", f"={here}") for word in given]
        return given

    def run(self, plan: Plan, reducers: int) -> None:
        for address, content in plan.task_files().items():
            Path(address).parent.mkdir(parents=True, exist_ok=True)
            Path(address).write_bytes(content)
        for step in plan.steps():
            command = self.arguments(step, reducers) if isinstance(step, JobStep) else self._node.command(step)
            if isinstance(step, JobStep):
                with self._said.open("w") as said:
                    done = subprocess.run(
                        command, env=self._environment, stdout=subprocess.DEVNULL, stderr=said, check=False
                    )
                assert done.returncode == 0, self._said.read_text()[-5000:]
            else:
                assert self._node.start(command).wait() == 0, self._node.said.read_text()


Case = tuple[Inputs, Settings, Any]
"""Files, settings, and the oracle's dataset."""


def reviews_case(folder: Path) -> Case:
    """Return real reviews if they are available, with a JSON array, and with a stopword file in another folder."""
    files = REVIEWS
    if not files:
        write_reviews(folder / "generated.json", texts=5_000)
        files = [folder / "generated.json.gz"]
        files[0].write_bytes(gzip.compress((folder / "generated.json").read_bytes()))
    stopwords = folder / "elsewhere" / "stopwords.txt"
    stopwords.parent.mkdir()
    stopwords.write_text("\n".join(sorted(load_stopwords())))
    more = [{"reviewText": f"a fine lamp of kind{number}", "overall": 1 + number % 5} for number in range(300)]
    (folder / "array.json").write_text(json.dumps(more, indent=1))
    lines = "".join(f"{json.dumps(each)}\n" for each in more).encode()
    expected = oracle.dataset([*(gzip.decompress(path.read_bytes()) for path in files), lines], NLTK)
    return Inputs(files=(*map(str, files), str(folder / "array.json"))), Settings(stopwords=str(stopwords)), expected


@pytest.mark.slow
def test_hadoop_streaming_makes_the_oracles_dataset(tmp_path: Path) -> None:
    inputs, settings, expected = reviews_case(tmp_path)
    plan = planned(inputs, str(tmp_path), settings=settings, tasks=3)
    StreamingNode(tmp_path / "node", faults=AttemptFaults(seed=5)).run(plan, reducers=3)
    assert_dataset(Path(plan.output), expected)


@pytest.mark.soak
@pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None, reason="needs java, and pyspark from PyPI"
)
def test_spark_makes_the_oracles_dataset(tmp_path: Path) -> None:
    inputs, settings, expected = reviews_case(tmp_path)
    plan = planned(inputs, str(tmp_path / "own"), settings=settings, tasks=3)
    Spark(tmp_path / "cluster").run(plan, reducers=3)
    assert_dataset(Path(plan.output), expected)
