"""What a node of EMR has once it has booted by emr/install.sh, with the real wheels and the real code."""

import gzip
import re
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import boto3
import pytest

from bootstrap.demo.reviews import write_reviews
from bootstrap.preprocessing.step_arguments import HARNESS
from tests.aws import asked_aws
from tests.fleet import pack_code
from tests.waiting import until

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[3]


class Node:
    """The primary node of a cluster, booted; runs commands as steps."""

    def __init__(self) -> None:
        self._s3, self._emr = boto3.client("s3"), boto3.client("emr")
        self._cluster = self._emr.run_job_flow(
            Name="mine",
            ReleaseLabel="emr-7.13.0",
            LogUri="s3://boot/logs/",
            ServiceRole="service",
            JobFlowRole="nodes",
            Instances={
                "InstanceGroups": [{"InstanceRole": "MASTER", "InstanceType": "m5.xlarge", "InstanceCount": 1}],
                "KeepJobFlowAliveWhenNoSteps": True,
            },
            BootstrapActions=[
                {
                    "Name": "install",
                    "ScriptBootstrapAction": {
                        "Path": "s3://boot/install.sh",
                        "Args": ["s3://boot/code.zip", "s3://boot/wheels.zip", "us-east-1"],
                    },
                }
            ],
        )["JobFlowId"]

    def says(self, script: str) -> str:
        """What a script says, standard error included; it must succeed."""
        step: Any = {
            "Name": "says",
            "ActionOnFailure": "CONTINUE",
            "HadoopJarStep": {"Jar": "command-runner.jar", "Args": ["bash", "-c", f"exec 2>&1; {script}"]},
        }
        (identifier,) = self._emr.add_job_flow_steps(JobFlowId=self._cluster, Steps=[step])["StepIds"]
        until(lambda: self._state(identifier) not in ("PENDING", "RUNNING"))
        key = f"logs/{self._cluster}/steps/{identifier}/stdout.gz"
        said = gzip.decompress(self._s3.get_object(Bucket="boot", Key=key)["Body"].read()).decode()
        assert self._state(identifier) == "COMPLETED", said
        return said

    def _state(self, step: str) -> str:
        found = self._emr.describe_step(ClusterId=self._cluster, StepId=step)
        return str(found["Step"]["Status"]["State"])


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("install")
    with zipfile.ZipFile(folder / "code.zip", "w") as code:
        pack_code(code, "common", "corpus", "jobs", "bootstrap/agent")
    with asked_aws(folder / "aws"):
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket="boot")
        s3.upload_file(str(ROOT / "bootstrap" / "preprocessing" / "emr" / "install.sh"), "boot", "install.sh")
        s3.upload_file(str(ROOT / "build" / "wheels" / "emr-x86_64.zip"), "boot", "wheels.zip")
        s3.upload_file(str(folder / "code.zip"), "boot", "code.zip")
        yield Node()


@pytest.fixture
def jobs(tmp_path: Path) -> str:
    """A command that does all jobs, on reviews of other shapes than those of the boot, of more words than a dictionary
    begins with room for."""
    write_reviews(tmp_path / "reviews.json", texts=300)
    words = " ".join(map("".join, product("bcdfghjklmnpq", repeat=4)))
    with (tmp_path / "reviews.json").open("a") as file:
        file.write(f'{{"reviewText": "{words}", "overall": 5}}\n')
    return (
        "shoal-python -c 'import sys; from jobs.pipeline import preprocess_locally; "
        "from corpus.reading.sources import Inputs; "
        'preprocess_locally(Inputs(files=(sys.argv[1],)), sys.argv[2], runner="inline")\' '
        f"{tmp_path}/reviews.json {tmp_path}/data"
    )


def test_no_job_compiles_anything_again(node: Node, jobs: str) -> None:
    compiled = "cd $NODE_ROOT/opt/shoal/compiled; find . -name '*.nb?' -printf '%p %T@\n' | sort"
    before = node.says(compiled).splitlines()
    assert len(before) > 10
    node.says(jobs)
    assert node.says(compiled).splitlines() == before


def test_nobody_else_can_change_the_compiled_code(node: Node) -> None:
    modes = node.says("find $NODE_ROOT/opt/shoal/compiled -printf '%m\\n'").split()
    assert len(modes) > 2
    assert all(int(mode, 8) & 0o022 == 0 and int(mode, 8) & 0o044 == 0o044 for mode in modes)


def test_a_container_of_another_user_has_a_copy_of_the_compiled_code(node: Node) -> None:
    said = node.says(
        """mkdir -p $NODE_ROOT/mnt/yarn/container_7
        cd $NODE_ROOT/mnt/yarn/container_7
        CONTAINER_ID=container_7 NUMBA_DEBUG_CACHE=1 shoal-python -c '
from corpus.tokenise import Tokeniser
Tokeniser()(["compiled"])'"""
    )
    loaded = [line for line in said.splitlines() if "data loaded from" in line]
    assert loaded
    assert all("/container_7/compiled." in line for line in loaded)
    assert "data saved to" not in said


def test_the_harness_for_spark_is_where_steps_name_it(node: Node) -> None:
    found = node.says("echo $NODE_ROOT/opt/shoal/venv/lib/python3.*/site-packages/mrjob/spark/harness.py").strip()
    assert re.sub(r"python3\.\d+", "python3.11", found).endswith(HARNESS)
