"""What `shoal embed --dry-run` shows of its text, and what readers have done with it, in words."""

from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from bootstrap.cli.output import Rows
from common.display import plural
from common.errors import DataError
from corpus.reading.inputs.finding import files_for_now
from corpus.reading.lines import split_lines
from corpus.reading.storage import open_blocks
from corpus.stream.lines import batch_of_lines, sound_texts
from corpus.stream.progress import Status
from corpus.stream.stream_settings import StreamSettings
from corpus.stream.tokenisers import END, words_of_lines

if TYPE_CHECKING:
    from bootstrap.training.places.place import Place

_SHOWN_WORDS = 12


def content(settings: StreamSettings, place: "Place") -> dict[str, Any]:
    """The sources as they are now, the beginning of the first file, and what nodes cost.

    Raises DataError for sources that cannot be read.
    """
    files = [file for address in settings.sources for file in files_for_now(address) if file.size]
    if not files and not settings.follow:
        raise DataError(f"there is no text in {', '.join(settings.sources)}; check the address")
    return {
        "dry_run": True,
        "sources": list(settings.sources),
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "goes_on": settings.follow,
        "sample": _sample(files[0].address, settings) if files else None,
        "settings": {name: getattr(settings, name) for name in ("tokeniser", "lowercase", "lemmatize", "readers")},
        **_nodes(place),
    }


def _words(found: Mapping[str, Any]) -> str:
    settings = found["settings"]
    case = "lower case" if settings["lowercase"] else "case as it is"
    return ", ".join([settings["tokeniser"], case, *(["lemmas"] if settings["lemmatize"] else [])])


READ: Rows = {
    "sources": "{sources:list}",
    "now": "{files:plural file}, {bytes:size}",
    "end": lambda found: "none: what comes is read, too" if found["goes_on"] else "at the end of these files",
    "words": _words,
    "readers": "{settings.readers}",
    "sample": "the first {sample.lines:plural line} of {sample.file}: {sample.words:,} words",
    "malformed": "{sample.malformed:,}",
    "as read": lambda found: " ".join(found["sample"]["example"]) if found["sample"] else None,
    "nodes": "{nodes:list}",
    "their price": "{dollars_an_hour:dollars} an hour",
}
"""The same for a person."""


def describe_reading(read: Status) -> str:
    """What readers have done, and for what they had to wait."""
    return (
        f"{read.words:,} words in {plural(read.lines, 'line')}, {read.malformed:,} malformed; waited "
        f"{read.waiting_seconds:,.0f} s for the sources, and {read.paused_seconds:,.0f} s for the ranks"
    )


def _sample(address: str, settings: StreamSettings) -> dict[str, Any]:
    """What the first lines of a file are read as."""
    block = next(open_blocks(address), b"")
    batch = batch_of_lines(address, next(split_lines(iter([block])), []), 0)
    texts, sound = sound_texts(batch, settings.text)
    words = words_of_lines(settings)(texts)
    first = next((index for index, word in enumerate(words) if word != END), 0)
    return {
        "file": address,
        "lines": len(batch.lines),
        "malformed": len(batch.lines) - len(sound),
        "words": len(words) - words.count(END),
        "example": list(takewhile(lambda word: word != END, words[first : first + _SHOWN_WORDS])),
    }


def _nodes(place: "Place") -> dict[str, Any]:
    nodes = place.nodes(readers=True)
    if not nodes:
        return {}
    return {"nodes": [node.instance_type for node in nodes], "dollars_an_hour": place.hourly(nodes)}
