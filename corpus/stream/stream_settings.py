"""Defines the settings of a stream's readers: the sources, and the rules that split their text into words.

The program that starts the readers writes the settings once, to `stream.json` in the stream's folder. Do not change
them afterwards. The parts of one stream would then have words by different rules, and a different number of readers
would read some files twice or not at all.
"""

import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Self

from common.checked_values import of_length, one_of, require_fields, within
from common.errors import DataError
from common.files import DOCUMENT_BYTES, partial_path, read_regular
from common.json_values import from_json, parse_json_object
from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED
from corpus.reading.s3 import is_s3

SETTINGS_NAME = "stream.json"
TOKENISERS = ("treebank", "punctuation", "spaces", "letters")

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MAX_SOURCES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class StreamSettings:
    """Sources of a stream, and the options for reading them. Raises DataError for invalid values."""

    sources: Annotated[tuple[str, ...], of_length(1, _MAX_SOURCES)]
    """Absolute paths of files and folders, and s3:// addresses of objects and prefixes."""
    readers: Annotated[int, within(1, 1 << 10)] = 1
    """Number of readers. Each reads some of the files."""
    text: tuple[str, ...] = ()
    """Text fields, if lines are JSON objects. Empty if each line is a text."""
    tokeniser: Annotated[str, one_of(TOKENISERS)] = "punctuation"
    """Rule that splits lines into words, one of TOKENISERS; see `corpus.stream.tokenisers`."""
    lowercase: bool = True
    lemmatize: bool = False
    """Whether to replace words by their lemmas."""
    part_rows: Annotated[int, within(1, 1 << 17)] = 8192
    """Number of rows in a part. The upper limit is low enough that a part and its words fit into memory."""
    follow: bool = False
    """Whether the sources keep growing, so that the stream never ends.

    If so, readers remove the parts that trainers have taken, and trainers can read the stream only once.
    """
    max_malformed: Annotated[float, within(0, 1)] = DEFAULT_MAX_MALFORMED
    """Maximum share of malformed lines."""
    ahead: Annotated[int, within(1, 1 << 20)] = 16
    """If `follow` is true, a reader pauses when trainers have not taken more than this number of its parts."""
    quiet_seconds: Annotated[float, within(0.001, 10**9)] = 30.0
    """Seconds without new lines after which a part that is not full is padded and written."""

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
        """Parse the settings from JSON. Raises DataError for any other text."""
        return from_json(cls, parse_json_object(text))


def absolute(address: str) -> str:
    """Return a source in the form that the settings store: an absolute path, or an unchanged S3 address.

    Raises DataError for an address with any other scheme.
    """
    if is_s3(address):
        return address
    if _ADDRESS.match(address):
        raise DataError(f"Shoal cannot read {address}; give files, folders, or addresses that begin with s3://")
    return str(Path(address).resolve())


def write_settings(stream: Path, settings: StreamSettings) -> None:
    """Write the settings of a stream. If the stream already has settings, check that they are the same.

    Raises DataError if the folder has different settings or is not writable.
    """
    path = stream / SETTINGS_NAME
    try:
        stream.mkdir(parents=True, exist_ok=True)
        partial = partial_path(path)
        partial.write_text(settings.to_json() + "\n", "utf-8")
        try:
            path.hardlink_to(partial)  # unlike a rename, this fails if another process wrote the file first
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
        return StreamSettings.from_json(read_regular(path, DOCUMENT_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path} does not exist; write the settings of the stream first") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    except DataError as error:
        raise DataError(f"{path} has no valid settings of a stream: {error}; write the file again") from error


def describe_difference(there: StreamSettings, wanted: StreamSettings) -> str | None:
    """Return a clause about the first setting that differs between an existing stream and a wanted one, or None."""
    for field in fields(StreamSettings):
        old, new = _shown(getattr(there, field.name)), _shown(getattr(wanted, field.name))
        if old != new:
            return f"{field.name} {old}, not {new}"
    return None


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)
