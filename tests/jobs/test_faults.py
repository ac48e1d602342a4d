"""What a cluster does to jobs: whatever is killed, doubled, full or cut, the dataset is the same, and nothing is half
written under a final name."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from benchmarks.streaming import StreamingNode, made, planned
from bootstrap.demo.reviews import write_reviews
from corpus.dataset import open_dataset
from corpus.reading.sources import Inputs
from embedded.faults.kinds import AttemptFaults, CutConnection, S3Error, Throttled
from jobs.steps import Plan
from tests.small_disk import NEEDS_A_SMALL_DISK, run_on_small_disk
from tests.waiting import until

pytestmark = pytest.mark.soak

STEPS = ["deduplicate", "count words", "choose vocabulary", "encode", "merge"]


@dataclass(frozen=True)
class Undisturbed:
    """What comes of the reviews where nothing goes wrong, and the files that passed between the steps."""

    inputs: Inputs
    digest: str
    counts: dict[str, Any]
    folder: Path

    def side_files(self) -> dict[str, bytes]:
        return contents(self.folder / "distinct")

    def check(self, plan: Plan) -> None:
        """That a plan came to the same, and what was said of it is what is there."""
        result = made(plan)
        assert (result.digest, result.counts) == (self.digest, self.counts)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*") if not path.name.startswith(".")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    for number in range(2):
        write_reviews(folder / f"{number}.json", texts=3_000, seed=number)
    inputs = Inputs(files=tuple(str(folder / f"{number}.json") for number in range(2)))
    plan = planned(inputs, str(folder), tasks=2)
    assert list(StreamingNode(folder / "node").run(plan)) == STEPS
    result = made(plan)
    return Undisturbed(inputs=inputs, digest=result.digest, counts=result.counts, folder=Path(plan.work))


def kill(running: "subprocess.Popen[bytes]", mark: str) -> None:
    """End a process, and what it started, as a machine that is lost ends them."""
    running.kill()
    running.wait()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"NODE_ROOT={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            continue


def test_a_job_that_is_lost_midway_leaves_only_whole_files_and_is_done_again(undisturbed, tmp_path) -> None:
    plan = planned(undisturbed.inputs, str(tmp_path), tasks=2)
    for address, content in plan.task_files().items():
        Path(address).parent.mkdir(parents=True, exist_ok=True)
        Path(address).write_bytes(content)
    node = StreamingNode(tmp_path / "node")
    distinct = Path(plan.work) / "distinct"
    running = node.start(node.command(plan.steps()[0]))

    def has_files() -> bool:
        assert running.poll() is None, "the job ended before it was killed"
        return bool(contents(distinct))

    until(has_files, every=0.001)
    kill(running, str(tmp_path / "node"))
    left = contents(distinct)
    assert left
    assert left.items() <= undisturbed.side_files().items()
    assert not Path(plan.steps()[0].done_file).exists()
    assert list(node.run(plan)) == STEPS
    undisturbed.check(plan)


ON_A_SMALL_DISK = """
import json, sys
from pathlib import Path
from subprocess import run
from benchmarks.streaming import StreamingNode, StepError, made, planned
from corpus.reading.sources import Inputs

disk, node, *files = sys.argv[1:]
plan = planned(Inputs(files=tuple(files)), disk, tasks=2)
once = ["mapreduce.map.maxattempts=1", "mapreduce.reduce.maxattempts=1"]
ended = []
for size in ("150k", "300k", "740k", "100m"):
    run(["mount", "-o", f"remount,size={size}", disk], check=True)
    try:
        StreamingNode(Path(node)).run(plan, properties=once)
        failed = None
    except StepError as error:
        failed = str(error).partition(":")[0]
    ended.append((failed, Path(disk, "data", "dataset.h5").exists()))
print(json.dumps((ended, made(plan).digest)))
"""


@NEEDS_A_SMALL_DISK
def test_a_disk_that_fills_ends_the_work_and_with_more_room_it_goes_on(undisturbed, tmp_path) -> None:
    (tmp_path / "steps.py").write_text(ON_A_SMALL_DISK)
    command = [sys.executable, "steps.py", str(tmp_path / "small"), str(tmp_path / "node"), *undisturbed.inputs.files]
    done = run_on_small_disk(tmp_path, 10_240, " ".join(command))
    assert done.returncode == 0, done.stderr
    ended, digest = json.loads(done.stdout)
    failed = [STEPS.index(step) for step, _ in ended[:-1]]
    assert failed == sorted(failed)
    assert len(set(failed)) > 1
    assert [there for _, there in ended] == [False, False, False, True]
    assert digest == undisturbed.digest


def test_an_s3_that_throttles_fails_and_cuts_connections_changes_nothing(undisturbed, aws, tmp_path) -> None:
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="pile")
    for path in undisturbed.inputs.files:
        s3.upload_file(path, "pile", f"reviews/{Path(path).name}")
    plan = planned(Inputs(files=("s3://pile/reviews/",)), "s3://pile/work", tasks=3)
    faults = (
        Throttled(service="s3", share=0.1),
        CutConnection(share=0.3, least=1 << 12),
        S3Error(operation="PutObject", share=0.1),
        S3Error(operation="GetObject", share=0.05),
    )
    with aws.faults.during(*faults):
        StreamingNode(tmp_path / "node", faults=AttemptFaults(killed=0.2, doubled=0.3)).run(plan, reducers=2)
    undisturbed.check(plan)
    kept = {
        found["Key"].rpartition("/")[2]: s3.get_object(Bucket="pile", Key=found["Key"])["Body"].read()
        for found in s3.list_objects_v2(Bucket="pile", Prefix=f"{plan.work.removeprefix('s3://pile/')}/distinct/")[
            "Contents"
        ]
    }
    assert kept == undisturbed.side_files()
    s3.download_file("pile", made(plan).dataset.removeprefix("s3://pile/"), str(tmp_path / "dataset.h5"))
    with open_dataset(tmp_path / "dataset.h5") as dataset:
        assert dataset.digest == undisturbed.digest
