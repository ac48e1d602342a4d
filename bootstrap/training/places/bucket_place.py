"""A place whose datasets and runs are in the data bucket of a deployment."""

import random
from datetime import UTC, datetime
from itertools import filterfalse
from pathlib import Path
from typing import Any

from bootstrap.aws import fetched, names, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.progress import Bars
from bootstrap.training.places.place import Place
from common.errors import ShoalError
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import is_s3, list_objects, read_text
from experiments.records.summaries import read_summary
from infra import topology
from trainer.config import TrainConfig
from trainer.embeddings.vectors import vectors_size
from trainer.output.run_files import SUMMARY


class InBucket(Place):
    """A deployment's place, by its data bucket."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.name = deployment, deployment.name
        self.options = {"deployment": (self.name,)}
        self._bucket = deployment.output(topology.OUTPUT_DATA_BUCKET)
        self._s3 = deployment.session.client("s3")

    def dataset(self, address: str | None, bars: Bars) -> str:
        """The address of a dataset in S3; one here is uploaded."""
        if address is None:
            if (newest := self.newest_dataset(bars)) is None:
                by = f"shoal preprocess --deployment {self.name} --input FILE..."
                how = "give the reviews: --input FILE..." if self.preprocesses else f"make one by: {by}"
                raise ShoalError(f"the deployment '{self.name}' has no dataset yet; {how}")
            return newest
        if not is_s3(address):
            return self._upload(Path(address), bars)
        place = self.deployment.readable(address, topology.OUTPUT_DATA_BUCKET)
        names.dataset(place.key)
        if place.key not in objects.sizes(self._s3, place):
            raise ShoalError(f"there is no dataset at {address}; check the address")
        return address

    def newest_dataset(self, bars: Bars) -> str | None:
        """The address of the deployment's newest dataset, by the last change in its folder; None where it has none."""
        below = list(list_objects(self._s3, s3.S3Path(self._bucket, topology.DATASETS_PREFIX)))
        changed = {
            each["Key"].rpartition("/")[0]: each["LastModified"]
            for each in sorted(below, key=lambda each: each["LastModified"])
        }
        found = [each for each in below if each["Key"].endswith(DATASET_NAME)]
        made = [each for each in found if names.is_dataset(each["Key"])]
        if len(made) < len(found):
            others = sorted(filterfalse(names.is_dataset, (each["Key"] for each in found)))
            bars.note(f"left out, because these are not names of Shoal's datasets: {', '.join(others)}")
        newest = max(made, key=lambda each: changed[each["Key"].rpartition("/")[0]], default=None)
        return str(s3.S3Path(self._bucket, newest["Key"])) if newest else None

    def _upload(self, path: Path, bars: Bars) -> str:
        with open_dataset(path) as opened:
            digest = opened.digest
        if path.name != DATASET_NAME:
            raise ShoalError(f"a dataset to upload must be named {DATASET_NAME}, but this is {path}; rename it")
        folder = s3.S3Path(self._bucket, f"{topology.DATASETS_PREFIX}{digest}/")
        return objects.upload(self._s3, [path], folder, bars)[0]

    def _require_readable(self, config: TrainConfig) -> None:
        """Raise ShoalError for a file of this configuration that is not there, or that its ranks may not read."""
        if config.embeddings is not None and not is_s3(config.embeddings):
            vectors_size(config.embeddings)  # vectors that are not there are told before anything costs money
        for address in filter(is_s3, (*config.similarity, *config.analogy, config.embeddings or "")):
            self.deployment.readable(
                address, topology.OUTPUT_DATA_BUCKET, under=(topology.RUNS_PREFIX, topology.DATASETS_PREFIX)
            )

    def _new_name(self) -> str:
        """A name for a run: sorted by time, and different for two runs that start at once."""
        return f"{self.name}.{datetime.now(UTC):%Y%m%dT%H%M%S}-{random.getrandbits(16):04x}"

    def _unfinished(self, bars: Bars) -> str:
        """The newest run that did not end. Raises ShoalError when there is none."""
        # Several deployments may share a bucket.
        keys = objects.sizes(self._s3, s3.S3Path(self._bucket, f"{topology.RUNS_PREFIX}{self.name}."))
        found = {key.removeprefix(topology.RUNS_PREFIX).partition("/")[0] for key in keys}
        if others := sorted(filterfalse(names.is_run, found)):
            bars.note(f"left out, because these are not names of Shoal's runs: {', '.join(others)}")
        for name in sorted(filter(names.is_run, found), reverse=True):
            summary = read_text(self._s3, s3.S3Path(self._bucket, f"{topology.RUNS_PREFIX}{name}/{SUMMARY}"))
            if summary is None or '"stopped": true' in summary:
                return name
        raise ShoalError(f"no training of '{self.name}' was stopped; leave out --resume to start one")


def copy_results(
    deployment: Deployment, folder: s3.S3Path, output: Path, bars: Bars
) -> tuple[list[Path], list[str], dict[str, Any] | None]:
    """Copy a run's files to the output, and note that in the bucket; returns the files, a sentence for each object
    that was not copied, and the content of the run's summary, if it left one."""
    client = deployment.session.client("s3")
    etags = fetched.etags(client, folder)
    files, refused = objects.download(client, folder, output, check=names.result)
    if not refused:
        run = folder.key.removeprefix(topology.RUNS_PREFIX).rstrip("/")
        fetched.mark(client, folder.bucket, {run: etags}, bars.note)
    return files, refused, read_summary(output) if output / SUMMARY in files else None
