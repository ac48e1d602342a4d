"""Cuts small files into ranges at any offset, and compares the reviews with the oracle's reviews (tests/oracle.py)."""

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

from backports import zstd

from corpus.dataset_settings import Settings
from corpus.reading.formats import LABELS, Format, LabelEncoder
from corpus.reading.ranges import read_batches
from corpus.reading.sources import WHOLE, Range, Source
from corpus.reading.tally import Tally
from tests import oracle

SNAP = Format(kind="json", text=("reviewText",), value="overall")
TWO_FIELDS = Format(kind="json", text=("x", "reviewText"), value="overall")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}
RATED, LABELLED = Settings(), Settings(labelled=True)


def read(ranges: Iterable[Range], chosen: Settings = RATED) -> tuple[list[tuple[str, int]], Tally]:
    """Read the ranges, and return all reviews and the tally. The tally was converted to records and back."""
    found = []
    whole = Tally()
    for part in ranges:
        tally = Tally()
        for batch in read_batches(part, LabelEncoder(chosen), tally):
            assert 0 < len(batch.texts) == len(batch.codes) <= 256
            assert batch.raw_bytes > 0
            found += zip(batch.texts, batch.codes, strict=True)
        for key, value in tally.records():
            whole.add_records(key, [value])
    return found, whole


def rules_of(chosen: Settings) -> oracle.Rules:
    same = {name: getattr(chosen, name) for name in ("rating_range", "labelled", "positive_label", "classes")}
    return oracle.Rules(**same, steps=chosen.rating_steps, fraction=chosen.rating_fraction)


def assert_equals_oracle_reading(ranges: list[Range], file: oracle.File, chosen: Settings = RATED) -> None:
    """Assert that the ranges of one file have the reviews, and the malformed lines, that the oracle reads."""
    rules = rules_of(chosen)
    outcomes = list(oracle.outcomes(file, rules))
    sound = [each for _, each in outcomes if not isinstance(each, str)]
    malformed = [(each, number) for number, each in outcomes if isinstance(each, str)]
    found, tally = read(ranges, chosen)
    assert found == [(text, LABELS.index(value) if isinstance(value, str) else value) for text, value in sound]
    assert tally.counts["lines"] == len(outcomes)
    assert tally.counts["malformed"] == len(malformed)
    for reason in {reason for reason, _ in malformed}:
        lines = [number for each, number in malformed if each == reason]
        assert tally.counts[f"malformed_by_reason.{reason}"] == len(lines)
        assert [place.line for place in tally.malformed_lines() if place.reason == reason] == [*dict.fromkeys(lines)][
            :3
        ]
    assert bool(tally.damage_reports()) == file.broken


def pieces(path: Path, content: bytes, cuts: list[int], form: Format = SNAP, code: int | None = None) -> list[Range]:
    """Write a file with this content, and return its ranges, cut at the offsets `cuts`."""
    path.write_bytes(content)
    edges = sorted({0, len(content), *(place for place in cuts if place < len(content))})
    return [Range(str(path), start, end, form, code, False) for start, end in pairwise(edges)]


def whole(path: Path, form: Format = SNAP) -> Range:
    return Range(str(path), 0, WHOLE, form, None, False)


def source(address: str, size: int, form: Format = SNAP, code: int | None = None, test: bool = False) -> Source:
    return Source(address=address, size=size, identity="", format=form, code=code, test=test)
