"""Text from which several programs learn the same words, and the sets that evaluate their embeddings."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from corpus.reading.storage import open_blocks
from corpus.stream.stream_settings import StreamSettings
from corpus.stream.tokenisers import words_of_lines
from shoal.demo.reviews import write_reviews

_GENERATED = 4_000


class Text(NamedTuple):
    """A file of lines with words separated by spaces, and its number of words."""

    path: Path
    words: int


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of texts and evaluation sets."""
    parser.add_argument(
        "texts", nargs="*", metavar="TEXT", help=f"files of lines (default: {_GENERATED:,} generated reviews)"
    )
    parser.add_argument("--similarity", nargs="+", default=[], metavar="FILE", help="sets of pairs of words")
    parser.add_argument("--analogy", nargs="+", default=[], metavar="FILE", help="sets of analogies")


def write_texts(options: argparse.Namespace, folder: Path) -> dict[str, Text]:
    """Write the texts in lower case with separate punctuation, and return them by name."""
    if not options.texts:
        write_reviews(folder / "generated.json", texts=_GENERATED)
    return {
        Path(address).name.partition(".")[0]: _write(address, folder)
        for address in options.texts or [str(folder / "generated.json")]
    }


def _write(address: str, folder: Path) -> Text:
    path, words = folder / f"{Path(address).name.partition('.')[0]}.txt", 0
    split = words_of_lines(StreamSettings(sources=(str(path),)))
    with path.open("w", encoding="utf-8") as file:
        for line in b"".join(open_blocks(address)).decode("utf-8", "replace").split("\n"):
            if found := split([line])[:-1]:
                words += len(found)
                file.write(" ".join(found) + "\n")
    return Text(path, words)


def evaluation_options(options: argparse.Namespace) -> Sequence[str]:
    """Return the evaluation sets as options of `shoal train`."""
    found: list[str] = []
    for name in ("similarity", "analogy"):
        if getattr(options, name):
            found += [f"--{name}", *getattr(options, name)]
    return found
