"""Tests of fetching runs from a data bucket of the embedded AWS."""

import os
from pathlib import Path
from typing import Any

import boto3
import pytest
from shoal_local_aws.aws import EmbeddedAws
from shoal_local_aws.faults.kinds import Denied

from bootstrap.agent.store import Bucket
from bootstrap.aws import fetched
from bootstrap.cli.main import main
from bootstrap.lifecycle.fetch import fetch_runs
from bootstrap.progress import Bars
from bootstrap.training.places.followed import copy_results
from common.errors import ShoalError

BUCKET = "data"
ATTACKED = "attacked"
ONE, TWO, GOOD = (f"{name}.20260102T030405-0a1b" for name in ("one", "two", "good"))
# Names that Shoal does not use, although they stay inside the folder.
FOREIGN = (
    "runs/jobs/merge.py",
    f"runs/{GOOD}/train.py",
    f"runs/{GOOD}/other/events",
    f"runs/{GOOD}/node-x.log",
    f"runs/{GOOD}/record.jsonl/x",
    f"runs/{GOOD}/model/x",
    f"runs/{GOOD}/model/config.json/x",
    f"runs/{GOOD}/model/.config.json",
    f"runs/{GOOD}/RECORD.JSONL",
    f"runs/{GOOD}.git/record.jsonl",
)
HOSTILE = (
    "runs/../escape",
    f"runs/{GOOD}/../../escape",
    f"runs/{GOOD}//escape",
    "runs//etc/escape",
    f"runs/{GOOD}/.bashrc",
    "runs/.ssh/authorized_keys",
    f"runs/{GOOD}/a\\b",
    f"runs/{GOOD}/\x1b[31mred",
    f"runs/{GOOD}/{'x' * 300}",
    f"runs/{GOOD}/link/escape",
    f"runs/{GOOD}/file/escape",
    f"runs/{GOOD}/folder",
)
RESULTS = ("model/config.json", "model/model.safetensors", "record.jsonl", "summary.json", "node-0.log")


@pytest.fixture(scope="module")
def s3(aws: EmbeddedAws) -> Any:
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


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_each_run_is_copied_into_its_own_folder_without_checkpoints(s3: Any, tmp_path: Path) -> None:
    with Bars() as bars:
        done = fetch_runs(s3, BUCKET, tmp_path, bars=bars)
    assert files(tmp_path) == {*(f"{ONE}/{name}" for name in RESULTS), f"{TWO}/record.jsonl"}
    assert (tmp_path / ONE / "model" / "config.json").read_bytes() == b"model/config.json"
    assert (done.runs, done.copied, done.present) == ([ONE, TWO], 6, 0)


def test_existing_files_are_kept_and_changed_ones_are_copied_again(s3: Any, tmp_path: Path) -> None:
    with Bars() as bars:
        fetch_runs(s3, BUCKET, tmp_path, bars=bars)
        (tmp_path / ONE / "model" / "config.json").write_bytes(b"half")
        os.utime(tmp_path / ONE / "summary.json", (1, 1))
        done = fetch_runs(s3, BUCKET, tmp_path, bars=bars)
    assert (done.copied, done.present) == (2, 4)
    assert (tmp_path / ONE / "model" / "config.json").read_bytes() == b"model/config.json"


def test_the_end_of_a_training_copies_a_file_that_changed_within_its_second(s3: Any, tmp_path: Path) -> None:
    store = Bucket(BUCKET, s3)
    copy_results(store, ONE, tmp_path)
    path = tmp_path / "summary.json"
    changed = path.stat().st_mtime
    path.write_bytes(b"before.json!")
    os.utime(path, (changed, changed))
    copy_results(store, ONE, tmp_path)
    assert path.read_bytes() == b"summary.json"


def test_one_run_can_be_fetched_alone(s3: Any, tmp_path: Path) -> None:
    with Bars() as bars:
        fetch_runs(s3, BUCKET, tmp_path, bars=bars, run=TWO)
    assert files(tmp_path) == {f"{TWO}/record.jsonl"}


def test_a_missing_run_is_reported_with_the_existing_ones(s3: Any, tmp_path: Path) -> None:
    with (
        Bars() as bars,
        pytest.raises(ShoalError, match=r"no run 'three' in s3://data/runs/; existing runs: one\.\S+, two\."),
    ):
        fetch_runs(s3, BUCKET, tmp_path, bars=bars, run="three")


def test_a_bucket_without_runs_gives_an_empty_result(s3: Any, tmp_path: Path) -> None:
    with Bars() as bars:
        assert fetch_runs(s3, "empty", tmp_path, bars=bars).runs == []


def test_a_run_counts_as_fetched_until_it_continues_unless_checkpoints_are_left(s3: Any, tmp_path: Path) -> None:
    s3.create_bucket(Bucket="noted")
    for run, name in ((ONE, "model/config.json"), (TWO, "record.jsonl"), (TWO, "checkpoints/step-000000001.pt")):
        s3.put_object(Bucket="noted", Key=f"runs/{run}/{name}", Body=b"x")
    assert fetched.unfetched(s3, "noted") == [ONE, TWO]
    with Bars() as bars:
        fetch_runs(s3, "noted", tmp_path, bars=bars)
    assert fetched.unfetched(s3, "noted") == [TWO]
    folder = f"runs/{TWO}/"
    tags = Bucket("noted", s3).list(folder).items()
    checkpoints = {key.removeprefix(folder): found.tag for key, found in tags}
    fetched.record(s3, "noted", {TWO: checkpoints}, pytest.fail)
    with Bars() as bars:
        fetch_runs(s3, "noted", tmp_path, bars=bars)
    assert fetched.unfetched(s3, "noted") == []
    for name in ("attempts/000001.json", "ended.json"):  # files that nobody needs
        s3.put_object(Bucket="noted", Key=f"runs/{ONE}/{name}", Body=b"{}")
    assert fetched.unfetched(s3, "noted") == []
    s3.put_object(Bucket="noted", Key=f"runs/{ONE}/model/config.json", Body=b"y")
    assert fetched.unfetched(s3, "noted") == [ONE]


def test_runs_are_fetched_from_a_read_only_bucket_without_a_record(s3: Any, aws: EmbeddedAws, tmp_path: Path) -> None:
    said: list[str] = []
    with aws.faults.during(Denied(service="s3", operation="PutObject")):
        fetched.record(s3, BUCKET, {ONE: {"x": "y"}}, said.append)
    assert len(said) == 1
    assert f"{ONE} was fetched, but Shoal cannot record that in s3://{BUCKET}" in said[0]


def prepared(output: Path) -> Path:
    """Create the folder of a run with a symbolic link out of it, a file, and a folder."""
    run = output / GOOD
    (run / "folder").mkdir(parents=True)
    (run / "file").write_text("mine")
    (output.parent / "elsewhere").mkdir()
    (run / "link").symlink_to(output.parent / "elsewhere")
    return run


def outside(output: Path) -> set[str]:
    return {path for path in files(output.parent) if not path.startswith(f"{output.name}/")}


def test_keys_that_lead_out_are_reported_and_the_rest_is_fetched(s3: Any, tmp_path: Path) -> None:
    output = tmp_path / "output"
    prepared(output)
    with Bars() as bars:
        done = fetch_runs(s3, ATTACKED, output, bars=bars)
    assert len(done.refused) == len(HOSTILE) + len(FOREIGN)
    assert outside(output) == set()
    assert files(output) == {f"{GOOD}/record.jsonl", f"{GOOD}/summary.json", f"{GOOD}/file"}
    assert (output / GOOD / "file").read_text() == "mine"
    assert (done.runs, done.copied) == ([GOOD], 2)


def test_a_training_writes_only_to_its_output(s3: Any, tmp_path: Path) -> None:
    output = prepared(tmp_path / "output")
    with pytest.raises(ShoalError, match=r"summary\.json is not the summary of a training"):
        copy_results(Bucket(ATTACKED, s3), GOOD, output).summary  # noqa: B018
    assert {path.name for path in output.iterdir() if path.is_file()} >= {"record.jsonl", "summary.json"}
    assert outside(tmp_path / "output") == set()


def test_a_file_of_the_user_is_not_replaced_by_an_unknown_object(s3: Any, tmp_path: Path) -> None:
    mine = [tmp_path / "jobs" / "merge.py", tmp_path / GOOD / "train.py"]
    for path in mine:
        path.parent.mkdir()
        path.write_text("mine")
    with Bars() as bars:
        refused = fetch_runs(s3, ATTACKED, tmp_path, bars=bars).refused
    assert [path.read_text() for path in mine] == ["mine", "mine"]
    assert any(sentence.startswith("'jobs' is not a valid name for a training run: ") for sentence in refused)
    assert any(
        sentence.startswith("'train.py' is not a valid name for a file of a training run: ") for sentence in refused
    )


def test_refused_objects_are_reported_and_the_exit_status_is_1(
    s3: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fetch", "--bucket", ATTACKED, "--output", str(tmp_path / "output")]) == 1
    output = capsys.readouterr()
    assert (
        "not fetched  'train.py' is not a valid name for a file of a training run: it must be record.jsonl, "
        in output.out
    )
    assert "objects in s3://attacked/runs/ not copied to" in output.err
    assert main(["fetch", "--bucket", BUCKET, "--output", str(tmp_path / "other")]) == 0
