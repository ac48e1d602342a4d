"""Unfinished steps of work on a cluster, by the markers of its steps."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import boto3
import pytest

from bootstrap.preprocessing import work
from bootstrap.preprocessing.work import ClusterWork, find_result, record_result
from corpus.counts import final_counts
from corpus.dataset_settings import DEFAULT
from corpus.reading.s3 import S3Path
from jobs.merge import MergeResult

NAMES = ("read", "choose", "encode")


@pytest.mark.parametrize(
    ("markers", "left"),
    [
        ({}, NAMES),
        ({"read": 1}, NAMES[1:]),
        ({"read": 1, "encode": 1}, NAMES[1:]),
        ({"read": 1, "choose": 25, "encode": 1}, NAMES[1:]),
        (dict.fromkeys(NAMES, 1), ()),
    ],
)
def test_work_continues_at_the_first_step_without_a_marker_of_the_last_day(markers, left, monkeypatch):
    def marker(_, place):
        hours = markers.get(place.key)
        return None if hours is None else {"LastModified": datetime.now(UTC) - timedelta(hours=hours)}

    monkeypatch.setattr(work, "head_or_none", marker)
    steps = [SimpleNamespace(done_file=f"s3://data/{name}") for name in NAMES]
    plan = SimpleNamespace(steps=lambda: steps)
    found = ClusterWork(s3=None, run="x", plan=plan, extra_files={}).unfinished()
    assert tuple(each.done_file.rpartition("/")[2] for each in found) == left


@pytest.mark.usefixtures("aws")
def test_the_dataset_of_the_same_work_is_found_while_it_exists():
    s3, bucket, datasets = boto3.client("s3"), "remembered", S3Path("remembered", "datasets/")
    s3.create_bucket(Bucket=bucket)
    counts = final_counts({}, settings=DEFAULT, positive_from=4, frequent_words=[])
    runs, made = {"a" * 12: "1" * 32, "b" * 12: "2" * 32}, {}
    for run, digest in runs.items():
        address = f"{datasets}{digest}/dataset.h5"
        made[run] = MergeResult(dataset=address, counts=counts, digest=digest, malformed=[])
        s3.put_object(Bucket=bucket, Key=f"datasets/{digest}/dataset.h5", Body=b"x")
        record_result(s3, run, made[run])
    first, second = runs
    assert {run: find_result(s3, run, datasets) for run in runs} == made
    assert find_result(s3, "c" * 12, datasets) is None
    s3.put_object(Bucket=bucket, Key=f"datasets/{runs[second]}/{second}.json", Body=b"{}")
    assert find_result(s3, second, datasets) is None  # not a summary
    extra_files = s3.get_object(Bucket=bucket, Key=f"datasets/{runs[first]}/{first}.json")["Body"].read()
    s3.put_object(Bucket=bucket, Key=f"datasets/{runs[second]}/{first}.json", Body=extra_files)
    s3.delete_object(Bucket=bucket, Key=f"datasets/{runs[first]}/dataset.h5")
    # It is in the folder of another dataset, and its own dataset does not exist.
    assert find_result(s3, first, datasets) is None
