"""How much a user's reviews are: rows, bytes, words and labels, estimated by the sample that `--dry-run` takes.

Do not take the duplicates of a part for those of the whole: of two equal texts a part seldom has both. They are counted
where all of the input was read, and otherwise every text counts as distinct.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bootstrap.preprocessing.preview import PreprocessingPreview
from common.display import plural
from corpus.dataset_settings import Settings
from corpus.reading.formats import Codes
from corpus.reading.inputs.understanding import Understanding
from corpus.reading.ranges import read_batches
from corpus.reading.sources import WHOLE, Range
from corpus.reading.tally import Tally
from corpus.text import BY_RULE, digest
from experiments.forecast.estimate import Estimate

_OFF_LENGTH = 0.1
"""By what share the mean bytes of a review are expected to be off in the sample."""
_OFF_UNPACKED = 0.1
"""The same of the bytes that a packed file has unpacked."""
_DUPLICATES = 0.25
"""The share of duplicates at the low end, where they are not known: that of all reviews of SNAP's full set."""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """What the reviews are, as far as a sample tells."""

    files: int
    stored_bytes: int
    raw_bytes: Estimate
    """Unpacked."""
    texts: Estimate
    """Reviews, with duplicates."""
    rows: Estimate
    """Of the dataset: distinct texts."""
    words: float
    """Of a text, on average."""
    labelled: bool
    """Whether `values` are labels, and not ratings."""
    values: Mapping[str, int]
    """Ratings or labels of the sample, with their counts."""
    assumed: tuple[str, ...]
    """What the estimates rest upon, for the user."""


def extent_of(preview: PreprocessingPreview) -> Extent:
    """The extent of the input that was looked at. Raises DataError for a file that cannot be read any more."""
    understanding = preview.understanding
    sample, sources = understanding.sample, understanding.sources
    whole = len(sample.files) == len(sources) and all(each.whole for each in sample.files.values())
    amounts = _counted(understanding, preview.settings) if whole else _estimated(understanding)
    raw_bytes, texts, rows, assumed = amounts
    return Extent(
        files=len(sources),
        stored_bytes=sum(source.size for source in sources),
        raw_bytes=raw_bytes,
        texts=texts,
        rows=rows,
        words=sample.words(preview.settings.words),
        labelled=understanding.labelled,
        values=dict(sorted(sample.values.items())),
        assumed=assumed,
    )


_Amounts = tuple[Estimate, Estimate, Estimate, tuple[str, ...]]
"""Raw bytes, texts and rows, and what they rest upon."""


def _counted(understanding: Understanding, settings: Settings) -> _Amounts:
    """The amounts of input that the sample has read completely, which is read again to find duplicates."""
    words, _ = BY_RULE[settings.words]
    codes, tally = Codes(settings), Tally()
    texts, found = 0, set[bytes]()
    for source in understanding.sources:
        part = Range(source.address, 0, WHOLE, source.format, source.code, source.test)
        for batch in read_batches(part, codes, tally):
            texts += len(batch.texts)
            found.update(digest(cleaned) for text in batch.texts if (cleaned := words(text)))
    size = sum(each.bytes for each in understanding.sample.files.values())
    told = f"All of it was read: {plural(texts - len(found), 'text')} of {texts:,} are duplicates, or have no word."
    return Estimate.exact(size), Estimate.exact(texts), Estimate.exact(len(found)), (told,)


def _estimated(understanding: Understanding) -> _Amounts:
    """The amounts of input of which the sample is a part."""
    sample, sources = understanding.sample, understanding.sources
    packed = any(source.compression for source in sources)
    counted = all(source.format.kind == "parquet" for source in sources)
    texts = understanding.rows * sum(each.texts for each in sample.files.values()) / max(1, sample.lines)
    number = Estimate.about(texts, 0.0 if counted else _OFF_LENGTH + packed * _OFF_UNPACKED)
    assumed = [
        "Every text counts as distinct, because a part of them does not tell how many are duplicates; at the low end "
        f"{_DUPLICATES:.0%} are, as of all of SNAP's reviews."
    ]
    if not counted:
        assumed.append(
            f"A review has {sample.line_bytes:,.0f} bytes, as in a sample of {plural(sample.lines, 'review')}, within "
            f"{_OFF_LENGTH:.0%}."
        )
    if packed:
        ratio = understanding.plain_bytes / sum(source.size for source in sources)
        assumed.append(
            f"Unpacked it has {ratio:.1f} times its bytes, by the beginnings of files, within {_OFF_UNPACKED:.0%}."
        )
    rows = Estimate((1 - _DUPLICATES) * number.low, number.middle, number.high)
    return Estimate.about(understanding.plain_bytes, packed * _OFF_UNPACKED), number, rows, tuple(assumed)
