"""Copying of run results from a data bucket, even after the deletion of its deployment."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.node.store import Bucket, StoredFile
from common import names
from common.errors import ShoalError
from common.progress import reporter
from corpus.reading.s3 import S3Path
from infra import topology
from shoal.aws import checked, fetched, objects, stacks
from shoal.aws.account import Account
from shoal.aws.deployment import no_such_deployment
from shoal.deployments.removal.sweep import KEPT, UNVERIFIED, find_buckets
from shoal.runs.files import Copied, copy_results
from trainer.output.run_files import CHECKPOINTS


@dataclass(frozen=True, kw_only=True)
class FetchResult:
    """Result of a fetch: run names, number of copied files, number of files already present, number of copied bytes,
    and a message for each object that was not copied."""

    runs: list[str]
    copied: int
    present: int
    bytes: int
    refused: list[str]


def runs(s3: Any, bucket: str) -> dict[str, dict[str, StoredFile]]:
    """Return the files of all runs in a data bucket, by run name and file name, without checkpoints. Runs are sorted by
    name, so the oldest run of a deployment is its first.

    Raises ShoalError if the bucket does not exist.
    """
    try:
        listed = Bucket(bucket, s3).list(names.RUNS)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise
        raise ShoalError(f"there is no bucket '{bucket}'; `aws s3 ls` lists your buckets") from None
    files_by_run: dict[str, dict[str, StoredFile]] = {}
    for key, file in listed.items():
        run, _, name = key.removeprefix(names.RUNS).partition("/")
        if not (name.startswith(f"{CHECKPOINTS}/") or objects.is_marker(key, file.size)):
            files_by_run.setdefault(run, {})[name] = file
    return dict(sorted(files_by_run.items()))


def fetch_runs(s3: Any, bucket: str, output: Path, *, run: str | None = None) -> FetchResult:
    """Copy all runs, or only `run`, to the folders `output`/RUN/. Unchanged files that are already present are skipped.

    The fetched files are recorded in the bucket. Checkpoints are not copied. The checkpoints of a finished run are
    deleted. A run with checkpoints counts as not fetched, because it might be resumed.

    Raises ShoalError if `run` does not exist. If the bucket has no runs, the result is empty.
    """
    existing = runs(s3, bucket)
    if run is not None and run not in existing:
        known = ", ".join(existing) or "none"
        raise ShoalError(f"there is no run '{run}' in s3://{bucket}/{names.RUNS}; existing runs: {known}")
    copied, refused = dict[str, Copied](), list[str]()
    wanted = {name: files for name, files in existing.items() if run in (None, name)}
    reporter().stage("fetch", sum(file.size for files in wanted.values() for file in files.values()))
    for name, files in wanted.items():
        try:
            into = f"{checked.run(name)}/"
        except ShoalError as error:
            refused += [str(error)] * len(files)
            continue
        fetched.remove_checkpoints(s3, S3Path(bucket, f"{names.RUNS}{name}/"))
        copied[name] = copy_results(
            Bucket(bucket, s3), name, output, into=into, files=files, skip=True, count=reporter().add
        )
    fetched.record(s3, bucket, {name: each.tags for name, each in copied.items() if each.tags})
    sizes = [size for each in copied.values() for size in each.sizes]
    return FetchResult(
        runs=[name for name, each in copied.items() if each.files],
        copied=len(sizes),
        present=sum(len(each.files) for each in copied.values()) - len(sizes),
        bytes=sum(sizes),
        refused=[*refused, *(sentence for each in copied.values() for sentence in each.refused)],
    )


def find_data_bucket(deployment: str, account: Account) -> str:
    """Return the name of a deployment's data bucket. The stack's outputs name the bucket. After the stack's deletion,
    the bucket's tags identify it.

    Raises ShoalError if no such bucket exists, if several exist, or if Shoal cannot check a bucket.
    """
    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(deployment))
    bucket = stacks.outputs(stack).get(names.OUTPUT_DATA_BUCKET) if stack else None
    if bucket:
        return bucket
    buckets = find_buckets(deployment, account)
    s3 = account.client("s3")
    kept = [
        each.identifier
        for each in buckets
        if each.outcome == KEPT or (each.outcome != UNVERIFIED and runs(s3, each.identifier))
    ]
    if not kept:
        for resource in buckets:
            if resource.outcome == UNVERIFIED:
                raise ShoalError(
                    f"Shoal cannot tell whether '{deployment}' left a data bucket: {resource.identifier} "
                    f"{resource.why}, or name the bucket with --bucket"
                )
        raise no_such_deployment(deployment, account)
    if len(kept) > 1:
        raise ShoalError(f"several data buckets of '{deployment}' exist: {', '.join(kept)}; name one with --bucket")
    return kept[0]
