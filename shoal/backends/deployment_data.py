"""Data of training runs on a deployment: datasets and files in its data bucket, and texts that its nodes read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import names
from common.errors import ShoalError
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import is_s3, list_objects
from corpus.reading.sources import Source
from shoal.aws import checked, fleet, objects
from shoal.aws.deployment import Deployment
from shoal.runs.sources.source import DataAccess
from trainer.embeddings.vectors import vectors_file, vectors_size

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

FILES = ("embeddings", "similarity", "analogy")
"""Options with files as values."""
_ANSWERS = {".questions": ".answers"}
"""Suffixes of the two files of an analogy set in MSR's format: questions and answers."""


class DeploymentData(DataAccess):
    """Data for the ranks of a deployment, in its data bucket."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._bucket = deployment.output(names.OUTPUT_DATA_BUCKET)
        self._s3 = deployment.session.client("s3")

    def dataset(self, address: str | None) -> str:
        """Return the S3 address of a dataset.

        Uploads a dataset of this machine. Without an address, uses the newest dataset.
        """
        if address is None:
            if (newest := self.newest_dataset()) is None:
                name = self._deployment.name
                by = f"shoal preprocess --deployment {name} --input FILE..."
                how = "pass the reviews: --input FILE..." if self.preprocesses else f"create a dataset: {by}"
                raise ShoalError(f"the deployment '{name}' has no dataset yet; {how}")
            return newest
        if not is_s3(address):
            return self._upload(Path(address))
        place = self._deployment.require_readable(address, names.OUTPUT_DATA_BUCKET)
        checked.dataset(place.key)
        if place.key not in objects.sizes(self._s3, place):
            raise ShoalError(f"there is no dataset at {address}; check the address")
        return address

    def newest_dataset(self) -> str | None:
        """Return the address of the most recently changed dataset; None if the bucket has no dataset."""
        below = list(list_objects(self._s3, s3.S3Path(self._bucket, names.DATASETS)))
        changed = {
            each["Key"].rpartition("/")[0]: each["LastModified"]
            for each in sorted(below, key=lambda each: each["LastModified"])
        }
        datasets = [each for each in below if checked.is_dataset(each["Key"])]
        newest = max(datasets, key=lambda each: changed[each["Key"].rpartition("/")[0]], default=None)
        return str(s3.S3Path(self._bucket, newest["Key"])) if newest else None

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ShoalError or DataError if an option names a file that is missing, or that the ranks are not allowed to
        read.
        """
        vectors = options.get("embeddings")
        if vectors is not None and not is_s3(vectors):
            vectors_size(vectors)  # raises an error for missing vectors before anything costs money
        for address in filter(is_s3, (*options.get("similarity", ()), *options.get("analogy", ()), vectors or "")):
            self._deployment.require_readable(address, names.OUTPUT_DATA_BUCKET, under=(names.RUNS, names.DATASETS))

    def _upload(self, path: Path) -> str:
        """Upload a dataset of this machine, and return its address."""
        with open_dataset(path) as opened:
            digest = opened.digest
        if path.name != DATASET_NAME:
            raise ShoalError(f"Shoal uploads only datasets with the name {DATASET_NAME}; rename {path}")
        folder = s3.S3Path(self._bucket, f"{names.DATASETS}{digest}/")
        return objects.upload(self._s3, [path], folder)[0]


class NodeData(DeploymentData):
    """Data for the ranks on a deployment's nodes, which also read texts from S3."""

    reads_only_s3 = True

    @property
    def readers(self) -> int:
        """Number of readers: one per reader node; without reader nodes, one on the first node that trains."""
        groups = fleet.groups(self._deployment, readers=True)
        return max(1, sum(group.size for group in groups if group.role == "read"))

    def require_readable(self, address: str) -> None:
        """Raise ShoalError if the text is not in S3 or not in the topology's inputs, because nodes cannot read such
        text.
        """
        if not is_s3(address):
            raise ShoalError(
                f"{address} is on this machine, but the nodes of a deployment read text only from S3; upload it, for "
                "example with `aws s3 cp`, to an address in the `inputs` of the topology "
                f"'{self._deployment.topology}', and pass that address"
            )
        self._deployment.require_readable(address)

    @property
    def preprocesses(self) -> bool:
        """True if the deployment has only one node, which also runs the preprocessing jobs."""
        return names.OUTPUT_ON_NODE in self._deployment.outputs

    def upload_inputs(self, sources: tuple[Source, ...], name: str) -> tuple[Source, ...]:
        """Upload the files to a new folder of the raw bucket that no other command uses.

        Returns their new addresses.
        """
        for source in sources:
            if is_s3(source.address):
                self._deployment.require_readable(source.address, names.OUTPUT_RAW_BUCKET)
        raw = s3.S3Path(self._deployment.output(names.OUTPUT_RAW_BUCKET), f"{names.RAW}{name}/")
        return objects.upload_reviews(self._s3, sources, raw)

    def require_common_folder(self) -> None:
        """Raise ShoalError if the deployment has several nodes but no shared file system for the parts of a stream."""
        deployment, nodes = self._deployment, sum(group.size for group in fleet.groups(self._deployment))
        if nodes > 1 and deployment.share is None:
            raise ShoalError(
                f"the {nodes} nodes of the deployment '{deployment.name}' need a shared file system for the parts of "
                f"the stream; write `share: nfs` or `share: efs` in the topology '{deployment.topology}', "
                "and deploy again"
            )


def with_uploaded_files(options: Mapping[str, Sequence[str]], folder: s3.S3Path) -> dict[str, tuple[str, ...]]:
    """Return a copy of the options in which files have the addresses to which `upload_files` uploads them."""
    files = {
        name: tuple(f"{folder}{objects.safe_name(Path(each).name)}" if not is_s3(each) else each for each in addresses)
        for name, addresses in _files_of(options)
    }
    return {**{name: tuple(words) for name, words in options.items()}, **files}


def upload_files(client: "S3Client", options: Mapping[str, Sequence[str]], folder: s3.S3Path) -> None:
    """Upload the files that options name to the folder: initial word embeddings, and word sets."""
    for address in [each for _, addresses in _files_of(options) for each in addresses if not is_s3(each)]:
        path = Path(address)
        answers = path.with_suffix(_ANSWERS.get(path.suffix, path.suffix))
        objects.upload(client, [path, answers] if answers != path and answers.exists() else [path], folder)


def _files_of(options: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each option with files, and the addresses of its files."""
    for name in FILES:
        if addresses := options.get(name):
            yield (
                name,
                [vectors_file(each) if name == "embeddings" and not is_s3(each) else each for each in addresses],
            )
