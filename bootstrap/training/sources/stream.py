"""Text for word embeddings, finite or unbounded, of which readers leave the words for the ranks."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from bootstrap.agent.documents import RunRequest
from bootstrap.progress import Bars
from bootstrap.training.sources.local_readers import FOLDER, forget, readers_of
from bootstrap.training.sources.source import DataAccess, Prepared, Sidecar, Source, Staging
from common.errors import DataError, ShoalError
from corpus.reading.inputs.finding import current_files, find_files
from corpus.reading.sources import Inputs, digest_of_files
from corpus.stream.progress import read_status
from corpus.stream.stream_settings import StreamSettings, describe_difference, read_settings
from trainer.config import TrainConfig


class StreamSource(Source):
    """Text as the user named it."""

    def __init__(self, settings: StreamSettings, *, readers: int | None = None, folder: Path | None = None) -> None:
        """`readers`: None for as many as the place has by default. `folder`: on this machine, one with words that are
        kept for the runs that follow; None: in the run's output, for itself alone."""
        self._settings, self._readers, self._folder = settings, readers, folder

    @classmethod
    def of_folder(cls, folder: Path) -> Self:
        """Text that an earlier run has read. Raises DataError for a folder that is no stream."""
        settings = read_settings(folder)
        return cls(settings, readers=settings.readers, folder=folder)

    def of_text(self, fields: tuple[str, ...]) -> Self:
        """The same with these fields as its text."""
        return type(self)(replace(self._settings, text=fields), readers=self._readers, folder=self._folder)

    @property
    def settings(self) -> StreamSettings:
        """How it is read; as many readers as were asked for."""
        return self._settings

    @property
    def endless(self) -> bool:
        return self._settings.follow

    def prepare(self, reach: DataAccess, config: TrainConfig, bars: Bars) -> "PreparedStream":  # noqa: ARG002
        """Check that nodes can read it."""
        settings = self.settings_for(reach)
        if reach.reads_s3_alone:
            return PreparedStream(settings)
        folder = self._folder or config.output / FOLDER
        return PreparedStream(settings, folder, keep=self._folder is not None or config.resume)

    def settings_for(self, reach: DataAccess) -> StreamSettings:
        """How it is read at a place. Raises what `prepare` raises."""
        settings = self._settings if self._readers else replace(self._settings, readers=reach.readers)
        if reach.reads_s3_alone:
            for address in settings.sources:
                reach.require_reads(address)
                if not current_files(address) and not settings.follow:
                    raise DataError(
                        f"there are no files at {address}; check the address, or give --follow to wait for some"
                    )
            reach.require_common_folder()
        return settings

    def digest(self) -> str | None:
        """That of the files' names, sizes and times. Raises DataError for text that is not there."""
        leave_out = None if self._folder is None else str(self._folder.parent.resolve())
        return digest_of_files(find_files(Inputs(files=self._settings.sources), leave_out=leave_out).files)


class PreparedStream(Prepared):
    """Text that readers can read."""

    called = "the text"
    staging = Staging("prepare the nodes")

    def __init__(self, settings: StreamSettings, folder: Path | None = None, *, keep: bool = True) -> None:
        """`folder`: for its words, on this machine; `keep`: what is there."""
        self.settings, self.here, self._keep = settings, folder, keep
        self.readers, self.inputs = settings.readers, settings.sources

    def request(self) -> Mapping[str, Any]:
        return {"stream": self.settings}

    def resumed(self, before: Callable[[], RunRequest]) -> Self:
        """With as many readers as before, who share its files."""
        stream = before().stream
        if stream is None:
            raise ShoalError("the run that would be resumed is none on a text; leave out --resume to start one")
        if other := describe_difference(stream, replace(self.settings, readers=stream.readers)):
            raise ShoalError(f"the run that would be resumed has {other}; resume with what it was started with")
        return type(self)(stream)

    @contextmanager
    def beside(self, bars: Bars) -> Iterator[Sidecar]:
        """Its readers; a finite text is read to its end first."""
        assert self.here is not None
        if not self._keep:
            forget(self.here)
        with readers_of(self.here, self.settings, bars) as readers:
            yield Sidecar(readers.look, partial(read_status, self.here) if self.settings.follow else None)
