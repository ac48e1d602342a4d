"""Source of training data for word embeddings: a finite or unbounded text stream, which readers split into parts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from bootstrap.node.documents import RunRequest
from common.errors import DataError, ShoalError
from corpus.reading.inputs.finding import current_files
from corpus.stream.progress import read_status
from corpus.stream.stream_settings import StreamSettings, describe_difference, read_settings
from shoal.runs.sources.local_readers import FOLDER, delete_stream, running_readers
from shoal.runs.sources.source import DataAccess, DataSource, Prepared, Sidecar, Staging
from trainer.config import TrainConfig


class StreamSource(DataSource):
    """Text stream as the user named it."""

    def __init__(self, settings: StreamSettings, *, readers: int | None = None, folder: Path | None = None) -> None:
        """Create the source.

        Args:
            settings: Addresses of the text and its format.
            readers: The number of readers (default: the backend's default).
            folder: A folder on this machine for the parts, which later runs can reuse (default: a folder in the run's
            output folder).
        """
        self._settings, self._readers, self._folder = settings, readers, folder

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """Return the source for text that an earlier run has read into a folder.

        Raises DataError if the folder does not contain a stream.
        """
        settings = read_settings(folder)
        return cls(settings, readers=settings.readers, folder=folder)

    def of_text(self, fields: tuple[str, ...]) -> Self:
        """Return a copy of the source that takes its text from these fields."""
        return type(self)(replace(self._settings, text=fields), readers=self._readers, folder=self._folder)

    @property
    def settings(self) -> StreamSettings:
        """Settings of the stream, as the user gave them."""
        return self._settings

    @property
    def endless(self) -> bool:
        return self._settings.follow

    def prepare(self, access: DataAccess, config: TrainConfig) -> "PreparedStream":
        """Check that the backend can read the text."""
        settings = self.settings_for(access)
        if access.reads_only_s3:
            return PreparedStream(settings)
        folder = self._folder or config.output / FOLDER
        return PreparedStream(settings, folder, keep=self._folder is not None or config.resume)

    def settings_for(self, access: DataAccess) -> StreamSettings:
        """Return the settings for a backend, with its number of readers. Raises the same errors as `prepare`."""
        settings = self._settings if self._readers else replace(self._settings, readers=access.readers)
        if access.reads_only_s3:
            for address in settings.sources:
                access.require_readable(address)
                if not current_files(address) and not settings.follow:
                    raise DataError(
                        f"there are no files at {address}; check the address, or wait for files with --follow"
                    )
            access.require_common_folder()
        return settings


class PreparedStream(Prepared):
    """Text stream that was checked for a backend, so that its readers can read it."""

    label = "the text"
    staging = Staging("prepare the nodes")

    def __init__(self, settings: StreamSettings, folder: Path | None = None, *, keep: bool = True) -> None:
        """`folder` is the folder for the parts, if the ranks are on this machine.

        `keep`: reuse the parts in the folder.
        """
        self.settings, self.local_path, self._keep = settings, folder, keep
        self.readers, self.inputs, self.is_endless = settings.readers, settings.sources, settings.follow

    def request(self) -> Mapping[str, Any]:
        return {"stream": self.settings}

    def resumed(self, before: RunRequest) -> Self:
        """Return the source for a resumed run, with the number of readers of the earlier start, because each reader has
        its share of the files. `before` is the earlier request of the run.

        Raises ShoalError if the run was started with a different source.
        """
        stream = before.stream
        if stream is None:
            raise ShoalError("the run to resume was not trained on a stream; start a new run without --resume")
        if other := describe_difference(stream, replace(self.settings, readers=stream.readers)):
            raise ShoalError(f"the run to resume has {other}; resume with the options with which it started")
        return type(self)(stream)

    @contextmanager
    def sidecar(self) -> Iterator[Sidecar]:
        """Run the readers for a block. A finite text is read to its end first."""
        assert self.local_path is not None
        if not self._keep:
            delete_stream(self.local_path)
        with running_readers(self.local_path, self.settings) as readers:
            yield Sidecar(readers.check, partial(read_status, self.local_path) if self.settings.follow else None)
