"""Datasets of preprocessing runs on a cluster."""

import boto3
import pytest

from corpus.counts import final_counts
from corpus.dataset_settings import DEFAULT
from corpus.reading.s3 import S3Path
from jobs.merge import MergeResult
from shoal.preprocessing.work import find_result, record_result


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
