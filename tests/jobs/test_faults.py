"""The dataset and the intermediate files do not depend on tasks that a cluster kills, doubles or cuts."""

from pathlib import Path

import boto3
import pytest
from shoal_local_aws.faults.kinds import AttemptFaults, CutConnection, S3Error, Throttled

from bootstrap.demo.reviews import write_reviews
from corpus.dataset import open_dataset
from corpus.reading.sources import Inputs
from tests.jobs.streaming_node import StreamingNode, made, planned

FAULTS = (
    Throttled(service="s3", share=0.1),
    CutConnection(share=0.3, least=1 << 12),
    S3Error(operation="PutObject", share=0.1),
    S3Error(operation="GetObject", share=0.05),
)


@pytest.mark.soak
def test_s3_throttling_failures_and_lost_connections_do_not_change_the_dataset(aws, tmp_path) -> None:
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="pile")
    files = [str(tmp_path / f"{number}.json") for number in range(2)]
    for number, path in enumerate(files):
        write_reviews(Path(path), texts=3_000, seed=number)
        s3.upload_file(path, "pile", f"reviews/{number}.json")
    undisturbed = planned(Inputs(files=tuple(files)), str(tmp_path), tasks=2)
    StreamingNode(tmp_path / "quiet").run(undisturbed)
    expected = made(undisturbed)
    plan = planned(Inputs(files=("s3://pile/reviews/",)), "s3://pile/work", tasks=3)
    with aws.faults.during(*FAULTS):
        StreamingNode(tmp_path / "node", faults=AttemptFaults(killed=0.2, doubled=0.3)).run(plan, reducers=2)
    assert (made(plan).digest, made(plan).counts) == (expected.digest, expected.counts)
    prefix = f"{plan.work.removeprefix('s3://pile/')}/distinct/"
    assert {
        found["Key"].removeprefix(prefix): s3.get_object(Bucket="pile", Key=found["Key"])["Body"].read()
        for found in s3.list_objects_v2(Bucket="pile", Prefix=prefix)["Contents"]
    } == {path.name: path.read_bytes() for path in Path(undisturbed.work, "distinct").glob("[!.]*")}
    s3.download_file("pile", made(plan).dataset.removeprefix("s3://pile/"), str(tmp_path / "dataset.h5"))
    with open_dataset(tmp_path / "dataset.h5") as dataset:
        assert dataset.digest == expected.digest
