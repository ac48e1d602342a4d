"""Texts of files for a model to label, and the ratings or labels that the files have for them.

The easy mistake is to refuse a file that says no rating or label, as preprocessing has to: its texts can be labelled
all the same, and only the comparison is missing. But whoever names the field of one wants the comparison.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corpus.errors import DataError
from corpus.reading.batches import TextBatch
from corpus.reading.formats import Codes
from corpus.reading.inputs.understanding import Understanding, understand_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from corpus.reading.tally import Tally
from corpus.reading.texts import read_texts
from corpus.rules import in_test_set
from corpus.settings import Settings
from corpus.text import digest, words
from jobs.settings import read_stopwords


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """Files whose texts are to be labelled, and how they are read."""

    understanding: Understanding
    settings: Settings
    """What ratings and labels of the files mean."""
    not_compared: str | None = None
    """Why answers cannot be compared with what the files say; None where they can."""


def find_text_files(
    files: Sequence[str], wanted: ReadingOptions, settings: Settings, *, exclude: Sequence[str] = ()
) -> TextFiles:
    """Find the files, and how they are read: with the ratings or labels that they say, or without any.

    `settings` say what ratings mean; `exclude` are patterns of what is left out of folders and patterns. Raises
    DataError for files that cannot be read, or where it is not clear how.
    """
    try:
        known = understand_inputs(Inputs(files=tuple(files), exclude=tuple(exclude), options=wanted))
        return TextFiles(understanding=known, settings=known.settings(settings))
    except DataError as error:
        if wanted.rating or wanted.label or wanted.positive_label:
            raise
        try:
            known = understand_inputs(Inputs(unlabelled=tuple(files), exclude=tuple(exclude), options=wanted))
        except DataError:
            raise error from None
        return TextFiles(understanding=known, settings=known.settings(settings), not_compared=str(error))


def read_text_files(given: TextFiles, tally: Tally) -> Iterator[TextBatch]:
    """The texts of the files, in their order; see `read_texts`."""
    return read_texts(given.understanding.sources, Codes(given.settings), tally)


def held_out(files: Sequence[str], settings: Settings) -> Iterator[str]:
    """The different texts of the files' test rows, as they are written there: no model has learnt from them."""
    stopwords, seen = read_stopwords(settings.stopwords), set[bytes]()
    for batch in read_text_files(find_text_files(files, ReadingOptions(), settings), Tally()):
        for text in batch.texts:
            cleaned = words(text)
            identity = digest(cleaned)
            if in_test_set(identity, settings.test_share) and identity not in seen and set(cleaned) - stopwords:
                seen.add(identity)
                yield text
