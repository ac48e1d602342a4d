"""Reads a sample of the input: a few megabytes of some of the files, with the same code that later reads all files.

A file can be sorted by label, so the sample includes the middle and the end of a file that can be cut. Stop reading
after many malformed records. Otherwise a file without valid reviews, which yields no batch, would be read to its end.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from io import BytesIO
from math import inf

from corpus.dataset_settings import Settings
from corpus.reading.compression import DamagedArchiveError, decompress
from corpus.reading.formats import LABELS, LabelEncoder
from corpus.reading.ranges import read_batches
from corpus.reading.sources import WHOLE, Range, Source
from corpus.reading.storage import open_range
from corpus.reading.tally import Tally
from corpus.text import BY_RULE, unescape

POSITIVE_NAME = "positive"
"""Value that stands for positive texts if the label itself is not known."""

_FILES = 20
_FILE_BYTES = 4 << 20
_ALL_BYTES = 32 << 20
_FIRST_TEXTS = 2_000
_WARNING_TEXTS = 200
_MAX_CUT_SHARE, _LONG_WORD_LETTERS = 0.05, 20
_EXAMPLE_WORDS = 12
_USUAL_EXPANSION = 4
_MAX_MALFORMED = 10_000


@dataclass(kw_only=True)
class FileSample:
    lines: int = 0
    bytes: int = 0
    """Decompressed size of the records that were read, in bytes."""
    expansion: float = 1.0
    """Ratio of decompressed size to stored size."""
    whole: bool = True
    """Whether the whole file was read."""
    texts: int = 0
    """Number of records that are valid reviews."""
    first_texts: list[str] = field(default_factory=list)
    """Texts of the first reviews."""

    def words(self, rule: str) -> float:
        """Return the mean number of words in a text.

        Each call counts again, which takes longer than reading the sample.
        """
        words, _ = BY_RULE[rule]
        return sum(len(words(text)) for text in self.first_texts) / max(len(self.first_texts), 1)


class _TooManyMalformedError(Exception):
    """Raised to stop reading a file with too many malformed records."""


class _LimitedTally(Tally):
    """Tally that raises _TooManyMalformedError after many malformed records."""

    def count_malformed(
        self, reason: str, address: str, start: int, line: int, excerpt: bytes, number: int = 1
    ) -> None:
        super().count_malformed(reason, address, start, line, excerpt, number)
        if self.counts["malformed"] > _MAX_MALFORMED:
            raise _TooManyMalformedError


@dataclass(kw_only=True)
class Sample:
    """Sample of the input, for each file and in total."""

    files: dict[str, FileSample] = field(default_factory=dict)
    """Sample of each file, by the file's address."""
    values: Counter[str] = field(default_factory=Counter)
    """Counts of the ratings or labels in the sample."""
    example: str = ""
    """Beginning of the first text, to show to the user."""
    example_value: str = ""
    """Rating or label of the text in `example`."""
    tally: Tally = field(default_factory=_LimitedTally)

    @property
    def lines(self) -> int:
        """Number of records that were read, including malformed records."""
        return self.tally.counts["lines"]

    @property
    def line_bytes(self) -> float:
        """Mean size of a record in bytes, or infinity if no review was read."""
        size = sum(each.bytes for each in self.files.values())
        return size / self.lines if size else inf

    def words(self, rule: str) -> float:
        """Return the mean number of words in a text."""
        texts = sum(each.texts for each in self.files.values())
        return sum(each.words(rule) * each.texts for each in self.files.values()) / texts if texts else 0.0

    def word_warnings(self, rule: str) -> list[str]:
        """Return warnings if this rule of words does not fit the texts. A warning says what to do."""
        words, _ = BY_RULE[rule]
        texts = [text for each in self.files.values() for text in each.first_texts][:_WARNING_TEXTS]
        letters = Counter(letter for text in texts for letter in unescape(text).lower() if letter.isalpha())
        cut = Counter({letter: count for letter, count in letters.items() if not letter.isascii()})
        if rule == "letters" and cut.total() > _MAX_CUT_SHARE * letters.total():
            share, such = cut.total() / letters.total(), ", ".join(letter for letter, _ in cut.most_common(3))
            return [
                f"{share:.0%} of the letters in the first texts, such as {such}, are not a to z: Shoal removes them "
                "and splits words there; --words tokens keeps them"
            ]
        found = [len(word) for text in texts for word in words(text) if word[0].isalpha()]
        if sum(found) > _LONG_WORD_LETTERS * len(found):
            return [
                f"words have {sum(found) / len(found):.0f} letters on average, as in texts without spaces (Chinese, "
                "Japanese, Thai): put spaces between the words"
            ]
        return []


def take_sample(sources: Sequence[Source], settings: Settings) -> Sample:
    """Read a sample of at most 20 files, chosen at regular intervals from all files."""
    chosen = sources[:: -(-len(sources) // _FILES)]
    limit = min(_FILE_BYTES, _ALL_BYTES // len(chosen))
    sample = Sample()
    encoder = LabelEncoder(settings)
    kept = _FIRST_TEXTS // len(chosen)
    for source in chosen:
        sample.files[source.address] = _sample_file(sample, source, encoder, settings, limit, kept)
    return sample


def _sample_file(
    sample: Sample, source: Source, encoder: LabelEncoder, settings: Settings, limit: int, kept: int
) -> FileSample:
    """Read a sample of about `limit` bytes from a file. Keep the first `kept` texts."""
    cut = source.format.is_splittable and not source.compression and source.size > limit
    of_file = FileSample(expansion=_expansion(source, limit // _USUAL_EXPANSION), whole=not cut)
    before = sample.lines
    try:
        for start, end in _sample_ranges(source.size, limit) if cut else [(0, WHOLE)]:
            part = Range(source.address, start, end, source.format, source.code, source.test)
            # Line numbers are unknown in the middle of a file, so malformed lines of these ranges are counted, but not
            # stored.
            tally = _LimitedTally() if start else sample.tally
            for texts, text_codes, raw_bytes, _ in read_batches(part, encoder, tally):
                if not sample.example:
                    sample.example = " ".join(texts[0].split()[:_EXAMPLE_WORDS])
                    sample.example_value = _value_text(text_codes[0], source, settings)
                sample.values.update(_value_text(code, source, settings) for code in text_codes)
                of_file.first_texts += texts[: kept - len(of_file.first_texts)]
                of_file.texts += len(texts)
                of_file.bytes += raw_bytes
                if end == WHOLE and of_file.bytes >= limit:
                    of_file.whole = False
                    break
            if start:
                sample.tally.counts.update(tally.counts)
    except _TooManyMalformedError:
        of_file.whole = False
    of_file.lines = sample.lines - before
    return of_file


def _sample_ranges(size: int, limit: int) -> list[tuple[int, int]]:
    """Return three ranges of a file that is larger than `limit`.

    They have half of `limit` bytes at the start, a quarter in the middle, and a quarter at the end.
    """
    quarter = limit // 4
    middle = max(2 * quarter, size // 2)
    return [(0, 2 * quarter), (middle, min(middle + quarter, size - quarter)), (size - quarter, size)]


def _expansion(source: Source, limit: int) -> float:
    """Return the ratio of decompressed size to stored size for the first `limit` bytes of a file."""
    if not source.compression:
        return 1.0
    with closing(open_range(source.address, 0, limit)) as file:
        packed = file.read(limit)
    taken = 0
    with suppress(DamagedArchiveError):  # the first bytes end inside the compressed data
        for block in decompress(BytesIO(packed), source.compression):
            taken += len(block)
    return taken / len(packed)


def _value_text(code: int, source: Source, settings: Settings) -> str:
    """Return the rating or label that a code stands for, as users write it."""
    if not settings.labelled:
        return settings.in_units(code)
    if settings.classes:
        return settings.classes[code]
    if source.code is not None or settings.positive_label is not None:
        return POSITIVE_NAME if code else "negative"
    return LABELS[code]
