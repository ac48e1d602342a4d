"""Inspects the input files: detects the format of each file, reads a sample, and estimates the size of the input.

Do not read whole files in this module, because the input can have ten thousand files.
"""

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from io import BytesIO
from typing import NamedTuple

from common.errors import DataError
from corpus.dataset_settings import Settings
from corpus.reading.compression import ArchiveMemoryError, DamagedArchiveError, compression, decompress
from corpus.reading.encodings import check_encoding_of_malformed
from corpus.reading.formats import MAX_LINE_BYTES, label_key
from corpus.reading.inputs.detect import PARQUET, DetectedFormat, detect_format, detect_parquet_format
from corpus.reading.inputs.fields import reading_settings
from corpus.reading.inputs.finding import find_files
from corpus.reading.inputs.listing import LeftOut, left_out_notes
from corpus.reading.inputs.sample import POSITIVE_NAME, Sample, take_sample
from corpus.reading.inputs.unsupported import SIGNATURE_BYTES, BinaryFileError, check_signature
from corpus.reading.inputs.values import check_classes, check_labels, check_scales
from corpus.reading.lines import check_line_ends
from corpus.reading.s3 import is_s3
from corpus.reading.sources import InputFile, Inputs, ReadingOptions, Source
from corpus.reading.storage import open_range
from corpus.reading.tally import list_values, other_labels

_HEAD_BYTES = 64 << 10
_CONNECTIONS = 16
_CLASSES_SHOWN = 8
_MAX_NEGATIVE_LABELS = 256
# A plain-text file with one review hardly ever has more lines.
_MAX_REVIEW_LINES = 200


@dataclass(frozen=True, kw_only=True)
class InputInspection:
    """Result of an inspection: the files with their formats, and properties that the beginnings of the files show."""

    sources: tuple[Source, ...]
    labelled: bool
    """Whether the input has labels instead of ratings."""
    positive_label: str | None
    negative_labels: tuple[str, ...]
    """Other labels in the sample if there is a positive label, the most frequent first."""
    classes: tuple[str, ...]
    """Names of the classes if there are more than two, otherwise empty."""
    test_input: bool
    """Whether the user gave separate files for the test set."""
    warnings: tuple[str, ...]
    sample: Sample
    values_by_file: Mapping[str, Counter[str]]
    """Counts of the ratings or labels in the beginning of each file, as they are written, by the file's address."""
    plain_bytes: int
    """Approximate decompressed size of the whole input, in bytes."""
    rows: int
    """Approximate number of records in the whole input."""

    @property
    def values(self) -> Counter[str]:
        """Counts of the ratings or labels in the beginnings of all files, summed over the files."""
        return sum(self.values_by_file.values(), Counter())

    def settings(self, chosen: Settings) -> Settings:
        """Return the settings `chosen`, with the values that depend on the input filled in."""
        return replace(
            chosen,
            labelled=self.labelled,
            positive_label=self.positive_label,
            negative_labels=self.negative_labels,
            classes=self.classes,
            test_input=self.test_input,
        )

    def check_values(self, settings: Settings, max_malformed: float) -> None:
        """Raise DataError if more than a share `max_malformed` of the ratings or labels does not fit `settings`."""
        if not self.labelled:
            check_scales(self.values_by_file, settings, max_malformed)
        elif settings.classes:
            check_classes(self.values, settings.classes, max_malformed)


def inspect_inputs(inputs: Inputs, leave_out: str | None = None) -> InputInspection:
    """Find the input files, and inspect their beginnings.

    Skips `leave_out`, the folder for the results. Raises DataError if the input is unusable. If a format is ambiguous,
    the message names the option with which the user can choose it.
    """
    files, warnings = find_files(inputs, leave_out)
    detected, notes = _detect_all(files, inputs.options)
    _require_consistent_headers(detected)
    labelled = _is_labelled(detected, inputs.options)
    learned, tested = (
        sum((each.values for found, each in detected.items() if found.test is test), Counter[str]())
        for test in (False, True)
    )
    values, options = learned + tested, inputs.options
    if labelled:
        check_labels(learned, tested, options)
    positive = options.positive_label
    inspected = {Source(**vars(found), format=each.format): each for found, each in detected.items()}
    sample = take_sample(tuple(inspected), reading_settings(labelled, options))
    check_encoding_of_malformed(sample.tally)
    check_line_ends(sample.tally)
    wanted = {POSITIVE_NAME: positive} if positive is not None else {name: name for name in options.class_names}
    absent = (
        [] if options.others else [repr(wanted[name]) for name in wanted if sample.values and not sample.values[name]]
    )
    if absent:
        listed = ", ".join(absent[:_CLASSES_SHOWN]) + (", ..." if len(absent) > _CLASSES_SHOWN else "")
        notes.append(
            f"no text of the sample has the label {listed}: the labels are {list_values(values)}; check "
            "--positive-label or --classes"
        )
    negative: Counter[str] = Counter()
    if positive is not None:
        keys = {label_key(value): count for value, count in values.items()}
        negative = Counter(keys | other_labels(sample.tally.counts))  # the sample has only some of the files
        del negative[label_key(positive)]
    notes += _line_notes(sample, inspected)
    lines = (
        {each.address for each in inspected if each.format.kind == "separated"} if options.quoting is None else set()
    )
    if cut := next((each for each in sample.tally.malformed_lines() if each.may_be_cut and each.file in lines), None):
        notes.append(
            f"a quoted text may be cut at its newline in line {cut.line} of {cut.file} ({cut.begins[:40]!r}); give "
            "--quoting doubled if texts are quoted, or --quoting none if quotes are part of the text"
        )
    extents = [_estimate_extent(source, each, sample) for source, each in inspected.items()]
    return InputInspection(
        sources=tuple(inspected),
        labelled=labelled,
        positive_label=positive,
        negative_labels=tuple(label for label, _ in negative.most_common(_MAX_NEGATIVE_LABELS)),
        classes=options.class_names,
        test_input=bool(inputs.test),
        warnings=(*warnings, *notes),
        sample=sample,
        values_by_file={found.address: each.values for found, each in detected.items()},
        plain_bytes=round(sum(size for size, _ in extents)),
        rows=round(sum(rows for _, rows in extents)),
    )


def _line_notes(sample: Sample, sources: Collection[Source]) -> list[str]:
    """Return a note if most plain-text files have only a few lines, so that each file might be a single text."""
    plain = {each.address for each in sources if each.format.kind == "text"}
    read = {address: each for address, each in sample.files.items() if address in plain}
    several = [address for address, each in read.items() if each.whole and 1 < each.lines <= _MAX_REVIEW_LINES]
    if len(several) < 3 or len(several) < len(read) / 2:
        return []
    return [
        f"Shoal reads each line of plain text as one text, for example {read[several[0]].lines} texts in "
        f"{several[0]}; if each of the "
        f"{len(plain)} files is one review, join its lines first"
    ]


def _estimate_extent(source: Source, known: DetectedFormat, sample: Sample) -> tuple[float, float]:
    """Return the approximate decompressed size of a file in bytes, and its approximate number of records."""
    if known.rows is not None:
        return known.plain_size or source.size, known.rows
    of_file = sample.files.get(source.address)
    if of_file:
        size = source.size * of_file.expansion
        line_bytes = of_file.bytes / of_file.lines if of_file.bytes else sample.line_bytes
        return size, of_file.lines if of_file.whole else size / line_bytes
    alike = [sample.files[address].expansion for address in sample.files if compression(address) == source.compression]
    size = source.size * sum(alike) / len(alike) if alike else source.plain_size
    return size, size / sample.line_bytes


class _Beginning(NamedTuple):
    """Decompressed beginning of a file."""

    data: bytes
    whole: bool
    damaged: bool


def _read_beginning(found: InputFile) -> _Beginning:
    """Read the beginning of a file, at least up to the end of its first line."""
    limit = _HEAD_BYTES
    while True:
        beginning = _read_first_bytes(found, limit)
        if beginning.whole or b"\n" in beginning.data or limit >= MAX_LINE_BYTES or beginning.data.startswith(PARQUET):
            return beginning
        limit *= 8


def _read_first_bytes(found: InputFile, limit: int) -> _Beginning:
    with closing(open_range(found.address, 0, limit)) as file:
        packed = file.read(limit)
    check_signature(found.address, packed[:SIGNATURE_BYTES])
    whole = len(packed) == found.size
    if not found.compression:
        return _Beginning(packed, whole, False)
    data = bytearray()
    try:
        for block in decompress(BytesIO(packed), found.compression):
            data += block
            if len(data) > limit:
                return _Beginning(bytes(data[:limit]), False, False)
    except ArchiveMemoryError as error:
        raise DataError(f"{found.address}: {error}; {error.advice}") from error
    except DamagedArchiveError:
        return _Beginning(bytes(data), whole, whole)
    return _Beginning(bytes(data), whole, False)


def _detect_all(
    found: Sequence[InputFile], options: ReadingOptions
) -> tuple[dict[InputFile, DetectedFormat], list[str]]:
    """Return the format of each file that has lines, and notes about skipped files."""
    remote = any(is_s3(each.address) for each in found)
    with ThreadPoolExecutor(_CONNECTIONS if remote else 1) as threads:
        seen = dict(zip(found, threads.map(lambda each: _detect_among(found, each, options), found), strict=True))
    detected = {each: known for each, known in seen.items() if isinstance(known, DetectedFormat)}
    left_out: LeftOut = {}
    for each, known in seen.items():
        if isinstance(known, str):
            left_out.setdefault(known, []).append(each.address)
    skipped = left_out_notes(left_out)
    if not detected:
        raise DataError(f"the input has no texts: {'; '.join(skipped)}; give files with reviews")
    return detected, skipped


def _detect_among(files: Sequence[InputFile], found: InputFile, options: ReadingOptions) -> DetectedFormat | str:
    """Return the result of `_detect` for a file.

    If the user did not give the file's own address, an error message suggests --exclude.
    """
    try:
        return _detect(found, options)
    except DataError as error:
        if found.named or len(files) == 1:
            raise
        name = shlex.quote(found.address.rpartition("/")[2])
        raise type(error)(f"{error}; if the file is not input, skip it with --exclude {name}") from error


def _detect(found: InputFile, options: ReadingOptions) -> DetectedFormat | str:
    """Return the format of a file, or the reason for skipping the file.

    Raises DataError for a damaged file without a complete line.
    """
    beginning = _read_beginning(found)
    ends = beginning.whole and not beginning.damaged
    if beginning.data.startswith(PARQUET):
        if found.compression:
            raise DataError(f"{found.address} is a compressed Parquet file; decompress it, and give the result")
        ends = False
        with closing(open_range(found.address, 0, 0)) as file:
            known = detect_parquet_format(found.address, file, options, found.code)
    else:
        try:
            known = detect_format(found.address, beginning.data, ends, options, found.code)
        except BinaryFileError:
            if found.named:
                raise
            return "an image or another binary file"
    if known is None and not ends:
        raise DataError(
            f"{found.address} has no complete line at its beginning, so it may be damaged; download it again"
        )
    return known or "no lines"


def _require_consistent_headers(detected: Mapping[InputFile, DetectedFormat]) -> None:
    """Raise DataError if only some tables have a header, because the other tables might be parts of a split file."""
    tables = {known.format.header: found.address for found, known in detected.items() if known.format.columns}
    if len(tables) > 1:
        raise DataError(
            f"{tables[True]} has a header, but {tables[False]} does not; join the parts of a file with cat, add the "
            "header to each part, or read the files separately"
        )


def _is_labelled(detected: Mapping[InputFile, DetectedFormat], options: ReadingOptions) -> bool:
    """Return whether the files have labels. Raises DataError if some files have labels and others have ratings."""
    by_kind = {known.labelled: (found.address, known.format.value) for found, known in detected.items()}
    if len(by_kind) > 1:
        (labels, label), (ratings, rating) = by_kind[True], by_kind[False]
        raise DataError(
            f"{labels} has labels{f' ({label})' if label else ''}, but {ratings} has ratings ({rating}); preprocess "
            "them separately, or name a common field with --label-field or --rating-field"
        )
    if False in by_kind and (options.positive_label is not None or options.classes):
        address, rating = by_kind[False]
        raise DataError(
            f"--classes and --positive-label require labels, but {address} has ratings ({rating}); name the label "
            "field with --label-field"
        )
    return True in by_kind
