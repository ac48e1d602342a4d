"""A place whose datasets and runs are in the data bucket of a deployment, and its runs, which need no command."""

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import filterfalse
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.aws import names, objects
from bootstrap.aws.deployment import Deployment
from bootstrap.aws.retry import is_not_accepted
from bootstrap.interrupt import Detached, mark_handled, name_of
from bootstrap.progress import Bars
from bootstrap.training.places.place import Place, Run
from bootstrap.training.places.run_launch import Wishes
from common.errors import ShoalError
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import is_s3, list_objects, read_text
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


class RunInBucket(Run):
    """A run whose results come into the data bucket."""

    survives = True
    _wishes: Wishes

    def leaves(self, interrupt: KeyboardInterrupt) -> bool:
        """Whether this interrupt ends the command alone."""
        return self.survives and (self._wishes.leave or name_of(interrupt) == signal.SIGHUP.name)

    @contextmanager
    def _left_to_itself(self) -> Iterator[None]:
        """A closed terminal and expired credentials end the command alone: raises Detached."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if not self.leaves(interrupt):
                raise
            mark_handled(interrupt)
            raise Detached from None
        except (BotoCoreError, ClientError) as error:
            if not self.survives or not is_not_accepted(error):
                raise
            raise Detached(f"AWS does not accept your credentials any more ({error})") from error
