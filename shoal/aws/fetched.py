"""Records of fetched objects, kept in the data bucket. A bucket that contains unfetched objects of runs outlives its
deployment."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from shoal_guard.handlers import cleanup

from common import names
from common.progress import reporter
from corpus.reading.s3 import S3Path, list_objects, read_text
from trainer.output.run_files import BINARY_VECTORS, CHECKPOINTS, MODEL, SUMMARY, TEXT_VECTORS, WEIGHTS

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


_KEPT_CHECKPOINTS = 2
"""Number of checkpoints to keep for a run that might be resumed. It is two because the last checkpoint can be
incomplete."""


def unfetched(s3: "S3Client", bucket: str) -> list[str]:
    """Return the names of the runs in a data bucket that have unfetched files, or files that changed after the
    fetch."""
    return cleanup.unfetched(s3, bucket, names.RUNS, names.FETCHED)


def record(s3: "S3Client", bucket: str, runs: Mapping[str, Mapping[str, str]]) -> None:
    """Add the ETags of fetched objects to the record of each run. `runs` maps each run name to a mapping from object
    name to ETag.

    If the bucket is not writable, the run still counts as not fetched. A note gives the reason.
    """
    for run, etags in runs.items():
        key = f"{names.FETCHED}{run}.json"
        try:
            recorded = {**cleanup.fetched_etags(s3, bucket, key), **etags}
            s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(recorded).encode())
        except (BotoCoreError, ClientError) as error:
            reporter().note(
                f"{run} was fetched, but Shoal cannot record that in s3://{bucket}, so the run still counts as not "
                f"fetched: {error}"
            )


def remove_checkpoints(s3: "S3Client", folder: S3Path) -> None:
    """Remove checkpoints that are no longer needed from a run's folder. SageMaker does not remove them.

    For a finished run with a model, all checkpoints are removed. For any other run, the newest two are kept. A note
    gives the reason if S3 refuses the removal.
    """
    checkpoints = sorted(each["Key"] for each in list_objects(s3, S3Path(folder.bucket, f"{folder.key}{CHECKPOINTS}/")))
    if not checkpoints:
        return
    summary = read_text(s3, S3Path(folder.bucket, f"{folder.key}{SUMMARY}"))
    weights = {f"{folder.key}{MODEL}/{name}" for name in (WEIGHTS, BINARY_VECTORS, TEXT_VECTORS)}
    model = {each["Key"] for each in list_objects(s3, S3Path(folder.bucket, f"{folder.key}{MODEL}/"))}
    has_finished = summary is not None and '"stopped": false' in summary and bool(weights & model)
    try:
        for key in checkpoints if has_finished else checkpoints[:-_KEPT_CHECKPOINTS]:
            s3.delete_object(Bucket=folder.bucket, Key=key)
    except (BotoCoreError, ClientError) as error:
        reporter().note(f"Shoal cannot delete the checkpoints in {folder}, which are no longer needed: {error}")
