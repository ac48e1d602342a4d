"""Copies the results of training runs from a data bucket, while its deployment exists or afterwards.

A file gets its name only when it is complete, with its object's time of change, so a later fetch can skip it. Accept
only the names that Shoal gives, because nodes write the bucket, and the folder can have files of the user.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from bootstrap.aws import fetched, names, objects, stacks
from bootstrap.aws.account import Account
from bootstrap.aws.deployment import no_such_deployment
from bootstrap.aws.paths import path_below
from bootstrap.progress import Bars
from bootstrap.removal.sweep import KEPT, UNVERIFIED, find_buckets
from common.errors import ShoalError
from corpus.reading.s3 import S3Path, list_objects
from infra import topology
from trainer.output.run_files import CHECKPOINTS


@dataclass(frozen=True, kw_only=True)
class Object:
    """A file of a run: its name below the run's folder, its key, size in bytes, ETag, and time of change."""

    run: str
    name: str
    key: str
    size: int
    etag: str
    changed: float


@dataclass(frozen=True, kw_only=True)
class FetchResult:
    """What was copied, what was there already, and in `refused` a sentence for each object that was not accepted."""

    runs: list[str]
    copied: int
    present: int
    bytes: int
    refused: list[str]


def runs(s3: Any, bucket: str) -> dict[str, list[Object]]:
    """The files of every run in a data bucket, by run, the oldest run first; without checkpoints.

    Raises ShoalError when there is no such bucket.
    """
    found: dict[str, list[Object]] = {}
    for each in _listed(s3, bucket):
        run, _, name = each["Key"].removeprefix(topology.RUNS_PREFIX).partition("/")
        if name.startswith(f"{CHECKPOINTS}/") or objects.is_marker(each["Key"], each["Size"]):
            continue
        changed = each["LastModified"].timestamp()
        file = Object(run=run, name=name, key=each["Key"], size=each["Size"], etag=each["ETag"], changed=changed)
        found.setdefault(run, []).append(file)
    return dict(sorted(found.items()))


def _listed(s3: Any, bucket: str) -> Iterator[Mapping[str, Any]]:
    try:
        yield from list_objects(s3, S3Path(bucket, topology.RUNS_PREFIX))
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucket":
            raise
        raise ShoalError(f"there is no bucket '{bucket}'; `aws s3 ls` lists the existing ones") from None


def fetch_runs(s3: Any, bucket: str, output: Path, *, bars: Bars, run: str | None = None) -> FetchResult:
    """Copy all runs, or one of them, to `output`/RUN/, except unchanged files that are there already.

    The bucket is told. A run with checkpoints, which are not copied, still counts as not fetched: it may go on. Those
    of a run that has finished are removed.

    Raises ShoalError when there is no such run. The result is empty when there are no runs at all.
    """
    found = runs(s3, bucket)
    if run is not None and run not in found:
        known = ", ".join(found) or "none"
        raise ShoalError(f"there is no run '{run}' in s3://{bucket}/{topology.RUNS_PREFIX}; there are: {known}")
    for name in found if run is None else [run]:
        fetched.forget_checkpoints(s3, S3Path(bucket, f"{topology.RUNS_PREFIX}{name}/"), bars.note)
    files = [file for name, held in found.items() if run in (None, name) for file in held]
    refused: list[str] = []
    fit = [file for file in files if _is_fit(output, file, refused)]
    missing = [file for file in fit if not _is_there(output / file.run / file.name, file)]
    bars.stage("fetch", sum(file.size for file in missing))
    done = copied = 0
    for file in missing:
        if _is_fit(output, file, refused):  # checked again, because files were written since
            path = output / file.run / file.name
            objects.save(s3, S3Path(bucket, file.key), path, changed=file.changed, count=bars.add)
            copied += 1
            done += file.size
            bars.at(done)
    etags = {name: {file.name: file.etag for file in fit if file.run == name} for name in sorted({f.run for f in fit})}
    fetched.mark(s3, bucket, etags, bars.note)
    return FetchResult(
        runs=list(etags),
        copied=copied,
        present=len(fit) - len(missing),
        bytes=done,
        refused=refused,
    )


def find_data_bucket(deployment: str, account: Account) -> str:
    """The data bucket of a deployment: by its stack or, when that is gone, by the bucket's tags.

    Raises ShoalError where there is none, where there are several, and where AWS does not tell.
    """
    stack = stacks.describe(account.client("cloudformation"), topology.stack_name(deployment))
    bucket = stacks.outputs(stack).get(topology.OUTPUT_DATA_BUCKET) if stack else None
    if bucket:
        return bucket
    found = find_buckets(deployment, account)
    s3 = account.client("s3")
    kept = [
        each.identifier
        for each in found
        if each.outcome == KEPT or (each.outcome != UNVERIFIED and runs(s3, each.identifier))
    ]
    if not kept:
        for resource in found:
            if resource.outcome == UNVERIFIED:
                raise ShoalError(
                    f"it is unknown whether '{deployment}' left a data bucket: {resource.identifier} {resource.why}, "
                    "or name the bucket by --bucket"
                )
        raise no_such_deployment(deployment, account)
    if len(kept) > 1:
        raise ShoalError(f"several data buckets of '{deployment}' were kept: {', '.join(kept)}; name one by --bucket")
    return kept[0]


def _is_fit(output: Path, file: Object, refused: list[str]) -> bool:
    """Whether a file has a name that Shoal gives and fits below `output`; if not, adds the reason to `refused`."""
    try:
        path_below(output, f"{names.run(file.run)}/{names.result(file.name)}")
    except ShoalError as error:
        refused.append(str(error))
        return False
    return True


def _is_there(path: Path, file: Object) -> bool:
    return path.is_file() and path.stat().st_size == file.size and int(path.stat().st_mtime) == int(file.changed)
