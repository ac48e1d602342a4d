"""Where hosts of one's own and the command that follows them have their documents, datasets and results: a folder that
the hosts share, or a bucket, which each of them and the command reach with credentials of their own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from bootstrap.agent.channel import Bucket, Document
from bootstrap.aws import objects
from bootstrap.aws.retry import is_not_accepted, retrying
from bootstrap.hosts.connection import LostError
from bootstrap.hosts.folder import SshFolder
from bootstrap.hosts.group import HostGroup
from bootstrap.progress import Bars
from bootstrap.training.places.run_launch import Store
from common.errors import DataError
from corpus.dataset import open_dataset
from corpus.layout import DATASET_NAME
from corpus.reading import s3
from corpus.reading.s3 import S3Path, is_s3, place_of

Result = TypeVar("Result")


class HostsStore(Store, Protocol):
    """Documents and files. Raises LostError where it cannot be used."""

    def read_from(self, key: str, offset: int, most: int) -> bytes:
        """At most so many bytes of a file from an offset; nothing where there is none."""
        ...

    def size(self, key: str) -> int | None:
        """The bytes of a file; None where there is none."""
        ...

    def folders(self, above: str) -> Sequence[str]: ...

    def put(self, path: Path, key: str, bars: Bars) -> None:
        """Copy a file of this machine there, where it appears whole; the bar shows its bytes."""
        ...

    def get(self, key: str, path: Path) -> None:
        """Copy a file of there to a path of this machine, where it appears whole."""
        ...


class BucketOfHosts:
    def __init__(self, address: str) -> None:
        self._bucket = place_of(address).bucket
        self._documents = Bucket(self._bucket)

    @property
    def name(self) -> str:
        return self._documents.name

    def read(self, key: str) -> Document | None:
        return self._call(partial(self._documents.read, key))

    def write(self, key: str, text: str) -> None:
        self._call(partial(self._documents.write, key, text))

    def write_if(self, key: str, text: str, known: Document | None) -> bool:
        return self._call(partial(self._documents.write_if, key, text, known))

    def list(self, prefix: str) -> Mapping[str, str]:
        return self._call(partial(self._documents.list, prefix))

    def read_from(self, key: str, offset: int, most: int) -> bytes:
        return self._call(lambda: s3.read_from(s3.client(), self._place(key), offset, most))

    def size(self, key: str) -> int | None:
        found = self._call(lambda: s3.head_if_there(s3.client(), self._place(key)))
        return None if found is None else found["ContentLength"]

    def folders(self, above: str) -> Sequence[str]:
        return self._call(lambda: s3.folders(s3.client(), self._place(f"{above}/")))

    def put(self, path: Path, key: str, bars: Bars) -> None:
        with self._explained():
            s3.upload(s3.client(), path, self._place(key), count=bars.add)

    def get(self, key: str, path: Path) -> None:
        with self._explained():
            objects.save(s3.client(), self._place(key), path)

    def _place(self, key: str) -> S3Path:
        return S3Path(self._bucket, key)

    def _call(self, call: Callable[[], Result]) -> Result:
        """Ask for something small, again and again while AWS is away."""
        with self._explained():
            return retrying(call)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with s3.explained_errors(self.name, "use"):
                yield
        except DataError as error:
            cause = error.__cause__
            if isinstance(cause, BotoCoreError | ClientError) and is_not_accepted(cause):
                why = f"AWS does not accept the credentials of this command for {self.name} ({cause})"
                raise LostError(f"{why}; renew them, or set AWS_PROFILE to others") from error
            raise LostError(str(error)) from error


def store_of(hosts: HostGroup) -> HostsStore:
    """What the hosts share."""
    folder = hosts.file.folder
    return BucketOfHosts(folder) if is_s3(folder) else SshFolder(hosts)


def send_dataset(store: HostsStore, path: Path, bars: Bars) -> str:
    """Send a dataset, if it is not there; returns its key. Raises DataError for one that cannot be used."""
    with open_dataset(path) as opened:
        key = f"datasets/{opened.digest}/{DATASET_NAME}"
    size = path.stat().st_size
    bars.stage("send the dataset", size, "B")
    if store.size(key) != size:
        store.put(path, key, bars)
    bars.at(size)
    return key
