"""Settings of a stream's readers, in `stream.json` in the stream's folder: the sources, and the rules that split them
into words.

The program that starts the readers writes the file once. Do not change it afterwards: parts of one stream would then
have different words, and another number of readers would share the files in another way.
"""

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Self

from common.errors import DataError
from common.files import partial_path
from common.json_values import from_json, of_length, one_of, parse_json_object, require_fields, within
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.s3 import is_s3

SETTINGS_NAME = "stream.json"
TOKENISERS = ("treebank", "punctuation", "spaces", "letters")

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MAX_SOURCES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """Sources of a stream and the options for reading them. Raises DataError for values out of bounds."""

    sources: Annotated[tuple[str, ...], of_length(1, _MAX_SOURCES)]
    """Absolute paths of files and folders, and s3:// addresses of objects and prefixes."""
    readers: Annotated[int, within(1, 1 << 10)] = 1
    """Number of readers that share the sources."""
    text: tuple[str, ...] = ()
    """Text fields if lines are JSON objects; empty if each line is a text."""
    tokeniser: Annotated[str, one_of(TOKENISERS)] = "punctuation"
    """One of TOKENISERS; see `corpus.stream.tokenisers`."""
    lowercase: bool = True
    lemmatize: bool = False
    """Whether to replace words by their lemmas."""
    part_rows: Annotated[int, within(1, 1 << 17)] = 8192
    """Rows of a part. The largest part and its words still fit into memory."""
    follow: bool = False
    """Whether sources keep growing, so that the stream is unbounded.

    Readers then remove parts that trainers have taken, and trainers can read the stream only once.
    """
    max_malformed: Annotated[float, within(0, 1)] = DEFAULT_MAX_MALFORMED
    """Maximum share of malformed lines."""
    ahead: Annotated[int, within(1, 1 << 20)] = 16
    """Number of parts that may wait for trainers before a reader pauses, if `follow` is true."""
    quiet_seconds: Annotated[float, within(0.001, 10**9)] = 30.0
    """Seconds without new lines after which a partly filled part is written."""

    def __post_init__(self) -> None:
        if self.sources == ():
            raise DataError("sources is empty; name at least one file, folder or address")
        require_fields(type(self), vars(self))
        if len(set(self.sources)) < len(self.sources):
            raise DataError("sources repeats an address; name each once")
        for address in self.sources:
            if not is_s3(address) and not Path(address).is_absolute():
                raise DataError(f"the source {address!r} is not an absolute path; readers may run in another folder")

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse the settings. Raises DataError for anything else."""
        return from_json(cls, parse_json_object(text))


def absolute(address: str) -> str:
    """Return a source as settings store it: an absolute path, or an unchanged S3 address.

    Raises DataError for an address of another kind.
    """
    if is_s3(address):
        return address
    if _ADDRESS.match(address):
        raise DataError(f"Shoal cannot read {address}; give files, folders, or addresses that begin with s3://")
    return str(Path(address).resolve())


def write_settings(stream: Path, settings: StreamSettings) -> None:
    """Write the settings of a stream, or check that the same settings exist.

    Raises DataError if the folder has other settings or is not writable.
    """
    path = stream / SETTINGS_NAME
    try:
        stream.mkdir(parents=True, exist_ok=True)
        partial = partial_path(path)
        partial.write_text(settings.to_json() + "\n", "utf-8")
        try:
            path.hardlink_to(partial)  # unlike a rename, this fails if another process was first
        finally:
            partial.unlink()
    except FileExistsError:
        if other := describe_difference(read_settings(stream), settings):
            raise DataError(
                f"{path} describes a stream with {other}; give the same settings, or another folder"
            ) from None
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}; choose another folder for the stream") from error


def read_settings(stream: Path) -> StreamSettings:
    """Read the settings of a stream. Raises DataError if they are missing or invalid."""
    path = stream / SETTINGS_NAME
    try:
        return StreamSettings.from_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path} does not exist; write the settings of the stream first") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    except DataError as error:
        raise DataError(f"{path} has no valid settings of a stream: {error}; write it again") from error


def describe_difference(there: StreamSettings, wanted: StreamSettings) -> str | None:
    """Return a clause about the first setting in which a stream differs from the wanted one, or None."""
    for field in fields(StreamSettings):
        old, new = _shown(getattr(there, field.name)), _shown(getattr(wanted, field.name))
        if old != new:
            return f"{field.name} {old}, not {new}"
    return None


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
