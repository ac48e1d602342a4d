"""Texts of files for a model to label, and its answers compared with what the files say themselves.

The easy mistake is to refuse a file that says no rating or label, as preprocessing has to: its texts can be labelled
all the same, and only the comparison is missing. But whoever names the field of one wants the comparison.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from corpus.errors import DataError
from corpus.formats import Codes
from corpus.rules import in_test_set
from corpus.settings import Settings
from corpus.text import digest, words
from jobs.batches import Batch
from jobs.choose import first_positive
from jobs.compression import DamagedArchiveError
from jobs.lines import LongLine, split_lines, without_mark
from jobs.ranges import WHOLE, Range, read_batches
from jobs.settings import read_stopwords
from jobs.sources import UNLABELLED, Inputs, Source, Wanted
from jobs.storage import open_blocks
from jobs.tally import Tally
from jobs.understanding import Understanding, understand
from trainer.labelling import Prediction
from trainer.metrics import Confusion

_BLOCK_BYTES, _BLOCK_TEXTS = 4 << 20, 8192
"""Of texts that are labelled together. Twice as many are hardly faster, and answers come later."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """Files whose texts are to be labelled, and how they are read."""

    understanding: Understanding
    settings: Settings
    """What ratings and labels of the files mean."""
    not_compared: str | None = None
    """Why answers cannot be compared with what the files say; None where they can."""


@dataclass(kw_only=True)
class Answers:
    """How often a model gave which answer to texts of each code of a rating or label."""

    counts: Counter[tuple[int, int]] = field(default_factory=Counter)
    """By code and label; texts without an answer are not among them."""
    unknown: int = 0
    """Texts without an answer: none of their words counts."""

    def add(self, codes: Sequence[int], said: Sequence[Prediction]) -> None:
        """Count the answers to texts of these codes."""
        self.unknown += sum(each.label is None for each in said)
        self.counts.update((code, each.label) for code, each in zip(codes, said, strict=True) if each.label is not None)

    def confusion(self, settings: Settings) -> Confusion:
        """Answers beside what is right. Raises FinalError where the labels do not say which of them is positive."""
        by_code = Counter[int]()
        for (code, _), number in self.counts.items():
            by_code[code] += number
        first = first_positive(by_code, settings)
        found = Counter[tuple[bool, int]]()
        for (code, label), number in self.counts.items():
            found[code >= first, label] += number
        return Confusion(
            true_positive=found[True, 1],
            false_positive=found[False, 1],
            false_negative=found[True, 0],
            true_negative=found[False, 0],
        )


def look(files: Sequence[str], wanted: Wanted, settings: Settings, *, exclude: Sequence[str] = ()) -> Given:
    """Find the files, and how they are read: with the ratings or labels that they say, or without any.

    `settings` say what ratings mean; `exclude` are patterns of what is left out of folders and patterns. Raises
    DataError for files that cannot be read, or where it is not clear how.
    """
    try:
        known = understand(Inputs(files=tuple(files), exclude=tuple(exclude), wanted=wanted))
        return Given(understanding=known, settings=known.settings(settings))
    except DataError as error:
        if wanted.rating or wanted.label or wanted.positive_label:
            raise
        try:
            known = understand(Inputs(unlabelled=tuple(files), exclude=tuple(exclude), wanted=wanted))
        except DataError:
            raise error from None
        return Given(understanding=known, settings=known.settings(settings), not_compared=str(error))


def read(given: Given, tally: Tally) -> Iterator[Batch]:
    """The texts of the files, in their order.

    Counts lines and malformed ones in `tally`. Raises DataError where a file cannot be read, or is damaged, after all
    that came before.
    """
    codes = Codes(given.settings)
    for source in given.understanding.sources:
        if source.format.kind == "text":
            yield from _plain(source, tally)
        else:
            part = Range(source.address, 0, WHOLE, source.format, source.code, source.test, source.size)
            yield from read_batches(part, codes, tally)
        for damage in tally.damages():
            raise DataError(f"{damage} is damaged, and nobody knows what is lost; download it again")


def in_blocks(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same texts, many at once. A DataError comes through after all that were read before it."""
    texts: list[str] = []
    codes: list[int] = []
    size = 0
    fault = None
    try:
        for batch in batches:
            texts += batch.texts
            codes += batch.codes
            size += batch.raw_bytes
            if len(texts) >= _BLOCK_TEXTS or size >= _BLOCK_BYTES:
                yield Batch(texts, codes, size)
                texts, codes, size = [], [], 0
    except DataError as error:
        fault = error
    if texts:
        yield Batch(texts, codes, size)
    if fault is not None:
        raise fault


def held_out(files: Sequence[str], settings: Settings) -> Iterator[str]:
    """The different texts of the files' test rows, as they are written there: no model has learnt from them."""
    stopwords, seen = read_stopwords(settings.stopwords), set[bytes]()
    for batch in read(look(files, Wanted(), settings), Tally()):
        for text in batch.texts:
            cleaned = words(text)
            identity = digest(cleaned)
            if in_test_set(identity, settings.test_share) and identity not in seen and set(cleaned) - stopwords:
                seen.add(identity)
                yield text


def plain_texts(blocks: Iterator[bytes], name: str, tally: Tally) -> Iterator[Batch]:
    """The lines of plain text, each a text whatever it holds; one that is too long counts as malformed in `tally`."""
    done = 0
    for lines in split_lines(blocks):
        if isinstance(lines, LongLine):
            done += 1
            tally.malformed("too_long", name, 0, done, lines.begins)
        else:
            done += len(lines)
            tally.counts["lines"] += len(lines)
            texts = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]
            yield Batch(texts, [UNLABELLED] * len(texts), sum(map(len, lines)) + len(lines))


def _plain(source: Source, tally: Tally) -> Iterator[Batch]:
    before, size, damaged = tally.counts["lines"], 0, False
    try:
        for batch in plain_texts(without_mark(open_blocks(source.address)), source.address, tally):
            size += batch.raw_bytes
            yield batch
    except DamagedArchiveError:
        damaged = True
    tally.read(source.address, 0, tally.counts["lines"] - before, size, damaged=damaged)
