"""The jobs are ordinary MRJobs: each runner of mrjob makes the dataset that `shoal preprocess` makes."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import boto3
import pytest

from benchmarks.real_reviews import REVIEWS
from common import names
from corpus.dataset_settings import DEFAULT
from corpus.layout import COUNTS_NAME, DATASET_NAME
from corpus.reading.sources import Inputs
from jobs.job import ReviewsJob
from jobs.local import preprocess_locally
from jobs.vocabulary import Vocabulary
from shoal.demo.reviews import write_reviews
from tests.jobs.piles import PLAIN
from tests.shoal.preprocessing.emr_clusters import deployment, make_buckets

FILES = (COUNTS_NAME, DATASET_NAME)
ROOT = Path(__file__).resolve().parents[2]


def typed(*words: object, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run Python as a user does who has this checkout."""
    command = [sys.executable, *map(str, words)]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_a_job_reads_raw_reviews_and_prints_texts_or_words(tmp_path: Path) -> None:
    (tmp_path / "reviews.json.gz").write_bytes(gzip.compress(PLAIN))
    texts = typed(ROOT / "jobs" / "deduplicate.py", "-q", "reviews.json.gz", folder=tmp_path)
    lines = texts.stdout.splitlines()
    (counts,) = (lines.pop(lines.index(each)) for each in lines if each.startswith(":counts\t"))
    assert len(lines) == 20
    assert "1\tthis lamp number worda is bright" in lines
    assert json.loads(counts.partition("\t")[2])["texts"] == 20
    words = typed(ROOT / "jobs" / "vocabulary.py", "-q", "--test-share", "0", tmp_path, folder=tmp_path)
    assert words.stdout.splitlines()[:5] == ["bright\t20", "is\t20", "lamp\t20", "number\t20", "this\t20"]
    assert {path.name for path in tmp_path.iterdir()} == {"reviews.json.gz"}


def test_a_job_ends_with_a_sentence_if_a_task_cannot_use_its_data(tmp_path: Path, messages) -> None:
    (tmp_path / "reviews.json").write_bytes(PLAIN + b"{\n" * 9)
    for script in ("dataset", "deduplicate"):
        options = ("-m", f"jobs.{script}", "-q", "--output-dir", tmp_path / "out", "reviews.json")
        ended = typed(*options, folder=tmp_path, PYTHONPATH=str(ROOT))
        assert ended.returncode == 1
        messages.check(ended.stderr)
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / "mine").touch()
    for options in (["reviews.json"], ["-o", tmp_path / "out", "reviews.json"], ["-o", "s3://a/b", "reviews.json"], []):
        ended = typed("-m", "jobs.dataset", *options, folder=tmp_path, PYTHONPATH=str(ROOT))
        assert ended.returncode in (1, 2)
        messages.check(ended.stderr.splitlines()[-1])
    ended = typed("-m", "jobs.dataset", "-r", "emr", "-o", "s3://a/b", "x.json", folder=tmp_path, PYTHONPATH=str(ROOT))
    messages.check(ended.stderr.splitlines()[-1])


def test_read_bytes_are_reported_in_large_steps(monkeypatch) -> None:
    monkeypatch.setattr("jobs.job._REPORT_BYTES", 100)
    job: ReviewsJob = Vocabulary([])
    reported: list[int] = []
    monkeypatch.setattr(job, "increment_counter", lambda *of: reported.append(of[-1]))
    for read in (60, 60, 101, 30):
        job.report_bytes(read)
    assert reported == [120, 101]


@pytest.mark.slow
def test_every_runner_makes_the_dataset_of_shoal_preprocess(tmp_path: Path, aws) -> None:
    folder = tmp_path / "reviews"
    folder.mkdir()
    for number, path in enumerate(REVIEWS[:2]):
        (folder / f"{number}.json.gz").write_bytes(path.read_bytes())
    write_reviews(folder / "more.json", texts=1_500)
    (folder / "array.json").write_text(
        json.dumps([{"reviewText": f"a fine lamp of kind{n}", "overall": 1 + n % 5} for n in range(300)], indent=1)
    )
    preprocess_locally(Inputs(files=(str(folder),)), str(tmp_path / "shoal"), settings=DEFAULT)
    expected = {name: (tmp_path / "shoal" / name).read_bytes() for name in FILES}
    for runner in ("inline", "local"):
        out = tmp_path / runner
        done = typed("-m", "jobs.dataset", "-r", runner, folder, "--output-dir", out, folder=ROOT)
        assert done.returncode == 0, done.stderr
        assert {name: (out / name).read_bytes() for name in FILES} == expected

    s3, digest = make_buckets(), json.loads((tmp_path / "inline" / "part-00000").read_text())["digest"]
    cluster = deployment().output(names.OUTPUT_CLUSTER_ID)
    for path in folder.iterdir():
        s3.upload_file(str(path), "raw", path.name)
    (tmp_path / "mrjob.conf").write_text("runners: {emr: {check_cluster_every: 1}}")
    options = ("-r", "emr", "--cluster-id", cluster, "s3://raw/*", "--output-dir", "s3://data/emr")
    options += ("-D", "mapreduce.job.reduces=2")
    done = typed("-m", "jobs.dataset", *options, folder=ROOT, MRJOB_CONF=str(tmp_path / "mrjob.conf"))
    assert done.returncode == 0, done.stderr
    args = ["shoal-preprocess", "s3://raw/*", "s3://data/hadoop", "-D", "mapreduce.job.reduces=2"]
    step = {"Name": "by hand", "ActionOnFailure": "CONTINUE"}
    step["HadoopJarStep"] = {"Jar": "command-runner.jar", "Args": args}
    emr = boto3.client("emr")
    (number,) = emr.add_job_flow_steps(JobFlowId=cluster, Steps=[step])["StepIds"]
    emr.get_waiter("step_complete").wait(
        ClusterId=cluster, StepId=number, WaiterConfig={"Delay": 1, "MaxAttempts": 300}
    )
    for name in ("emr", "hadoop"):
        keys = {each["Key"] for each in s3.list_objects_v2(Bucket="data", Prefix=f"{name}")["Contents"]}
        assert f"{name}/{digest}/dataset.h5" in keys
        assert not any("-work-" in key for key in keys)
        counts = s3.get_object(Bucket="data", Key=f"{name}/{digest}/counts.json")["Body"].read()
        assert counts == expected["counts.json"]
