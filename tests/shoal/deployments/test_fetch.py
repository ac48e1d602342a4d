"""Tests of fetching runs from a data bucket of the embedded AWS."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from shoal_local_aws.faults.kinds import Denied

from bootstrap.node.store import Bucket
from common.errors import ShoalError
from common.progress import reporting
from shoal.aws import checked, fetched
from shoal.deployments.fetch import FetchResult, fetch_runs
from shoal.runs.files import copy_results
from tests.shoal.cli.command import shoal_here

BUCKET = "data"
ATTACKED = "attacked"
ONE, TWO, GOOD = (f"{name}.20260102T030405-0a1b" for name in ("one", "two", "good"))
NAMES = "train.py other/events node-x.log record.jsonl/x model/x model/config.json/x model/.config.json RECORD.JSONL"
FOREIGN = ["runs/jobs/merge.py", f"runs/{GOOD}.git/record.jsonl", *(f"runs/{GOOD}/{name}" for name in NAMES.split())]
"""Names that Shoal does not use, although they stay inside the folder."""
BAD_NAMES = [
    *("../../escape", "/escape", ".bashrc", "a\\b", "\x1b[31mred", "x" * 300),
    *("link/escape", "file/escape", "folder"),
]
HOSTILE = [
    *("runs/../escape", "runs//etc/escape", "runs/.ssh/authorized_keys"),
    *(f"runs/{GOOD}/{name}" for name in BAD_NAMES),
]
RESULTS = ("model/config.json", "model/model.safetensors", "record.jsonl", "summary.json", "node-0.log")


@pytest.fixture(scope="module")
def s3(aws) -> Any:
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    for name in (*RESULTS, "checkpoints/last.pt"):
        client.put_object(Bucket=BUCKET, Key=f"runs/{ONE}/{name}", Body=name.encode())
    client.put_object(Bucket=BUCKET, Key=f"runs/{TWO}/record.jsonl", Body=b"{}")
    client.put_object(Bucket=BUCKET, Key="datasets/x/dataset.h5", Body=b"x")
    client.create_bucket(Bucket="empty")
    client.create_bucket(Bucket=ATTACKED)
    for key in (*HOSTILE, *FOREIGN, f"runs/{GOOD}/record.jsonl", f"runs/{GOOD}/summary.json"):
        client.put_object(Bucket=ATTACKED, Key=key, Body=b"taken over")
    client.put_object(Bucket=ATTACKED, Key=f"runs/{GOOD}/", Body=b"")
    return client


@pytest.fixture
def fetch(s3, tmp_path) -> Callable[..., FetchResult]:
    """Function that fetches runs from a bucket into the folder `output`."""

    def run(bucket: str = BUCKET, **options: str) -> FetchResult:
        return fetch_runs(s3, bucket, tmp_path / "output", **options)

    return run


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_each_run_is_copied_into_its_own_folder_without_checkpoints(fetch, tmp_path) -> None:
    done = fetch()
    assert files(tmp_path / "output") == {*(f"{ONE}/{name}" for name in RESULTS), f"{TWO}/record.jsonl"}
    assert (tmp_path / "output" / ONE / "model" / "config.json").read_bytes() == b"model/config.json"
    assert (done.runs, done.copied, done.present) == ([ONE, TWO], 6, 0)
    assert done.bytes == len("{}") + sum(map(len, RESULTS))


def test_existing_files_are_kept_and_changed_ones_are_copied_again(fetch, tmp_path) -> None:
    fetch()
    config = tmp_path / "output" / ONE / "model" / "config.json"
    config.write_bytes(b"half")
    os.utime(tmp_path / "output" / ONE / "summary.json", (1, 1))
    done = fetch()
    assert (done.copied, done.present) == (2, 4)
    assert config.read_bytes() == b"model/config.json"


def test_the_end_of_a_training_copies_a_file_that_changed_within_its_second(s3, tmp_path) -> None:
    store = Bucket(BUCKET, s3)
    copy_results(store, ONE, tmp_path)
    path = tmp_path / "summary.json"
    changed = path.stat().st_mtime
    path.write_bytes(b"before.json!")
    os.utime(path, (changed, changed))
    copy_results(store, ONE, tmp_path)
    assert path.read_bytes() == b"summary.json"


def test_a_file_of_implausible_size_is_not_copied(s3, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(checked, "DOCUMENT_BYTES", 5)
    copied = copy_results(Bucket(BUCKET, s3), ONE, tmp_path)
    assert [sentence.split()[0] for sentence in copied.refused[1:]] == ["model/config.json", "summary.json"]
    assert files(tmp_path) == {*RESULTS} - {"model/config.json", "summary.json"}


def test_one_run_can_be_fetched_alone(fetch, tmp_path) -> None:
    fetch(run=TWO)
    assert files(tmp_path) == {f"output/{TWO}/record.jsonl"}


def test_a_missing_run_is_reported_with_the_existing_ones(fetch, messages) -> None:
    with messages.raises(ShoalError):
        fetch(run="three")


def test_a_bucket_without_runs_gives_an_empty_result(fetch) -> None:
    assert fetch("empty").runs == []


def test_a_run_counts_as_fetched_until_it_continues_unless_checkpoints_are_left(s3, fetch) -> None:
    s3.create_bucket(Bucket="noted")
    for run, name in ((ONE, "model/config.json"), (TWO, "record.jsonl"), (TWO, "checkpoints/step-000000001.pt")):
        s3.put_object(Bucket="noted", Key=f"runs/{run}/{name}", Body=b"x")
    assert fetched.unfetched(s3, "noted") == [ONE, TWO]
    fetch("noted")
    assert fetched.unfetched(s3, "noted") == [TWO]
    folder = f"runs/{TWO}/"
    checkpoints = {key.removeprefix(folder): each.tag for key, each in Bucket("noted", s3).list(folder).items()}
    fetched.record(s3, "noted", {TWO: checkpoints})
    fetch("noted")
    assert fetched.unfetched(s3, "noted") == []
    for name in ("attempts/000001.json", "ended.json"):  # files that nobody needs
        s3.put_object(Bucket="noted", Key=f"runs/{ONE}/{name}", Body=b"{}")
    assert fetched.unfetched(s3, "noted") == []
    s3.put_object(Bucket="noted", Key=f"runs/{ONE}/model/config.json", Body=b"y")
    assert fetched.unfetched(s3, "noted") == [ONE]


def test_a_read_only_bucket_gets_no_record_of_fetched_runs(s3, aws, messages) -> None:
    shown = Mock()
    with reporting(shown), aws.faults.during(Denied(service="s3", operation="PutObject")):
        fetched.record(s3, BUCKET, {ONE: {"x": "y"}})
    messages.check(shown.note.call_args.args[0])


@pytest.fixture
def run_folder(tmp_path) -> Path:
    """The folder of a run with a symbolic link out of it, a file, and a folder."""
    run = tmp_path / "output" / GOOD
    (run / "folder").mkdir(parents=True)
    (run / "file").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (run / "link").symlink_to(tmp_path / "elsewhere")
    return run


def test_keys_that_lead_out_are_reported_and_the_rest_is_fetched(fetch, run_folder, tmp_path, messages) -> None:
    done = fetch(ATTACKED)
    assert len(done.refused) == len(HOSTILE) + len(FOREIGN)
    for sentence in sorted({each.partition("' is not ")[2] for each in done.refused}):
        messages.check(sentence)
    assert files(tmp_path) == {f"output/{GOOD}/{name}" for name in ("record.jsonl", "summary.json", "file")}
    assert (run_folder / "file").read_text() == "mine"
    assert (done.runs, done.copied) == ([GOOD], 2)


def test_a_training_writes_only_to_its_output(s3, run_folder, tmp_path, messages) -> None:
    with messages.raises(ShoalError):
        copy_results(Bucket(ATTACKED, s3), GOOD, run_folder).summary  # noqa: B018
    assert files(run_folder) >= {"record.jsonl", "summary.json"}
    assert [path for path in files(tmp_path) if not path.startswith("output/")] == []


@pytest.mark.parametrize(("bucket", "status"), [(ATTACKED, 1), (BUCKET, 0)])
def test_refused_objects_are_reported_and_the_exit_status_is_1(s3, tmp_path, messages, bucket, status) -> None:
    done = shoal_here("fetch", "--bucket", bucket, "--output", tmp_path / "output")
    assert (done.returncode, "not fetched" in done.stdout) == (status, status == 1)
    messages.check(done.stderr.rstrip())
