"""Notes in a data bucket which objects of a run were fetched: the bucket outlives its deployment if it holds others."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.handlers import cleanup

from corpus.reading.s3 import S3Path, list_objects, read_text
from infra import topology
from trainer.output.run_files import BINARY_VECTORS, CHECKPOINTS, MODEL, SUMMARY, TEXT_VECTORS, WEIGHTS

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


_KEPT = 2
"""Of a run that may go on, the newest checkpoints; the last one may be incomplete."""


def unfetched(s3: "S3Client", bucket: str) -> list[str]:
    """The runs of a data bucket that were not fetched whole, as they are now."""
    return cleanup.unfetched(s3, bucket, topology.RUNS_PREFIX, topology.FETCHED_PREFIX)


def mark(s3: "S3Client", bucket: str, runs: Mapping[str, Mapping[str, str]], say: Callable[[str], None]) -> None:
    """Note of each of these runs that these `etags` were fetched, besides those noted before.

    Where the bucket may not be written the run counts as not fetched, and `say` is told.
    """
    for run, found in runs.items():
        key = f"{topology.FETCHED_PREFIX}{run}.json"
        try:
            noted = {**cleanup.fetched_etags(s3, bucket, key), **found}
            s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(noted).encode())
        except (BotoCoreError, ClientError) as error:
            say(f"{run} was fetched, but s3://{bucket} could not be told, so that it goes on keeping it: {error}")


def forget_checkpoints(s3: "S3Client", folder: S3Path, say: Callable[[str], None]) -> None:
    """Remove the checkpoints of a run that has finished and whose model is there, and of another all but the newest
    two: SageMaker, unlike agents, leaves them in the bucket. Where that is refused, `say` is told."""
    checkpoints = sorted(each["Key"] for each in list_objects(s3, S3Path(folder.bucket, f"{folder.key}{CHECKPOINTS}/")))
    if not checkpoints:
        return
    summary = read_text(s3, S3Path(folder.bucket, f"{folder.key}{SUMMARY}"))
    weights = {f"{folder.key}{MODEL}/{name}" for name in (WEIGHTS, BINARY_VECTORS, TEXT_VECTORS)}
    model = {each["Key"] for each in list_objects(s3, S3Path(folder.bucket, f"{folder.key}{MODEL}/"))}
    has_finished = summary is not None and '"stopped": false' in summary and bool(weights & model)
    try:
        for key in checkpoints if has_finished else checkpoints[:-_KEPT]:
            s3.delete_object(Bucket=folder.bucket, Key=key)
    except (BotoCoreError, ClientError) as error:
        say(f"checkpoints that nobody needs any more stay in {folder}: {error}")


def put(s3: "S3Client", place: S3Path, run: str, text: str, say: Callable[[str], None]) -> None:
    """Write an object of a run that nobody needs to fetch, because it only has what the command was told."""
    etag = s3.put_object(Bucket=place.bucket, Key=place.key, Body=text.encode())["ETag"]
    mark(s3, place.bucket, {run: {place.key.rpartition("/")[2]: etag}}, say)
