"""Encodes raw texts as a dataset with ragged rows in one pass over the files, for training without preprocessing.

The files, which can be on S3, are read once, in order and in bounded memory. Words are mapped to ids by a growing
dictionary, and the ids are stored on disk, in one file for each part of the dataset. The vocabulary is known only after
the last text. Then the rows are written with the ids of the vocabulary. Duplicates are kept, as in published training
and test sets. `shoal preprocess` can create the same rows in a different order.

The trainer uses the first rows for validation. In the order of a file, these rows might all be of one class. So the
digests of the texts select the rows that are written first.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from common.errors import DataError, explain_full_disk, is_full_disk
from common.private_folders import temporary_folder
from corpus.counts import LENGTH_BINS, final_counts
from corpus.dataset import DatasetWriter
from corpus.dataset_settings import DEFAULT, Settings
from corpus.dictionary import TokenisedTexts
from corpus.layout import MIN_ROWS, MIN_TRAINING_ROWS, RowBlock
from corpus.reading.acceptance import check_input, first_positive_code, require_classes
from corpus.reading.formats import LABELS, LabelEncoder
from corpus.reading.ranges import read_batches
from corpus.reading.sources import WHOLE, Range, Source
from corpus.reading.storage import identity_of
from corpus.reading.tally import Tally
from corpus.reading.texts import join_batches
from corpus.rules import VALIDATION_SHARE, in_test_sets, most_frequent, most_frequent_ids
from corpus.segments import add_counts, gather
from corpus.text import FIRST_WORD, UNKNOWN, digests
from corpus.token_dictionary import TokenDictionary

SETTINGS = replace(DEFAULT, duplicates=True)
"""Settings of such a dataset, except for the settings that depend on the input.

If the texts have more words than the vocabulary can contain, it contains the words that appear first.
"""

_PARTS = _TRAINING, _VALIDATION, _TEST = 0, 1, 2
_MARGIN = 1.2
"""Share of rows that are selected to be written first, divided by the share of validation rows.

It is above 1, because a random selection can have slightly fewer rows than expected.
"""
_MAX_EXTRA_WORDS = 1 << 20
"""Number of words beyond the vocabulary size that the dictionary may contain before these words are removed."""

_CodeArray = npt.NDArray[np.uint8 | np.uint16]
"""Codes of ratings or labels, of shape (n,). With more than 256 classes, a code has 16 bits."""


def encode_texts(
    sources: Sequence[Source],
    settings: Settings,
    output: Path,
    *,
    max_malformed: float,
    report: Callable[[int], None] = lambda _: None,
    place: str = "--cache",
) -> dict[str, Any]:
    """Encode the texts of the files as a dataset, write it to `output` completely or not at all, and return its counts.

    `settings` are SETTINGS with the values that depend on the input. `report` is called after each batch with the
    number of decompressed bytes in the batch.

    Raises DataError if a file is unreadable, is damaged or changes during the call; if more than a share
    `max_malformed` of the lines is malformed; if too few training or test texts remain; if a class has no training
    text; and if `output` is not writable or its disk is full. The message about `output` names the option `place`, with
    which the user can choose another path.
    """
    with (
        explain_full_disk(output, place),
        _folder_next_to(output, place) as folder,
        closing(_EncodedTexts(folder, settings)) as texts,
    ):
        tally = Tally()
        for source in sources:
            texts.read(source, tally, report)
        check_input(tally, max_malformed, settings)
        texts.require_rows()
        require_classes(texts.training_texts, settings, sources)
        return _write(texts, tally.counts, settings, output, place)


@contextmanager
def _folder_next_to(output: Path, place: str) -> Iterator[Path]:
    """Yield a temporary folder next to `output`. The folder and its content are removed afterwards."""
    with ExitStack() as stack:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(temporary_folder(".texts-", output.parent))
        except OSError as error:
            if is_full_disk(error):
                raise
            raise DataError(f"cannot write to {output.parent}: {error.strerror}; choose another {place}") from error
        yield folder


class _Block(NamedTuple):
    """Some texts of one part of the dataset.

    `ids` has the dictionary ids of all words of the texts, concatenated. `lengths` has the number of words of each
    text, and `codes` has the code of each text's rating or label. Both have the shape (n,).
    """

    ids: npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.uint32]
    codes: _CodeArray


class _Part:
    """Texts of one part of the dataset, stored on disk.

    `blocks` yields them in the same blocks in which they were added, so that memory is bounded for texts of any length.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.file = (folder / str(number)).open("w+b")
        self.rows = self._blocks = 0

    def add(self, block: _Block) -> None:
        for values in block:
            np.save(self.file, values)
        self.rows += len(block.codes)
        self._blocks += 1

    def blocks(self) -> Iterator[_Block]:
        self.file.seek(0)
        for _ in range(self._blocks):
            yield _Block(*(np.load(self.file) for _ in _Block._fields))


class _EncodedTexts:
    """Texts that were read so far, as ids of one dictionary, divided into the parts of the dataset.

    `close` closes the files of the parts.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.parts = [_Part(folder, part) for part in _PARTS]
        self.counts: Counter[str] = Counter()
        self.training_texts: Counter[int] = Counter()
        """Number of training texts by code."""
        self.dictionary = TokenDictionary()
        self.occurrences = np.zeros(settings.vocabulary_size + 1, np.int64)
        """Number of occurrences of each word in training texts, by its dictionary id.

        The last entry is for all other words.
        """
        self._settings, self._encoder = settings, LabelEncoder(settings)

    def close(self) -> None:
        for part in self.parts:
            part.file.close()

    def read(self, source: Source, tally: Tally, report: Callable[[int], None]) -> None:
        part = Range(source.address, 0, WHOLE, source.format, source.code, source.test, source.size)
        for batch in join_batches(read_batches(part, self._encoder, tally)):
            self._add(batch.texts, np.array(batch.codes, self._settings.label_dtype), test=source.test)
            report(batch.raw_bytes)
        if identity_of(source.address) != source.identity:
            raise DataError(f"{source.address} changed after the command started; run the same command again")

    def require_rows(self) -> None:
        """Raise DataError if the input has too few training texts or test texts."""
        train, test = self.parts[_TRAINING].rows + self.parts[_VALIDATION].rows, self.parts[_TEST].rows
        if train < MIN_TRAINING_ROWS or test < MIN_ROWS:
            way = "input, another --test-share, or --test-input FILE"
            if self._settings.test_input:
                way = "test texts" if train >= MIN_TRAINING_ROWS else "training texts"
            raise DataError(
                f"training needs at least {MIN_TRAINING_ROWS} training texts and {MIN_ROWS} test texts with words, "
                f"but the input has {train:,} and {test:,}; give more {way}"
            )

    def _add(self, texts: Sequence[str], codes: _CodeArray, *, test: bool) -> None:
        """Add texts to their parts of the dataset. Texts without words are counted, but not added."""
        words = self.dictionary(texts)
        lengths = np.diff(words.ends, prepend=0)
        nonempty = np.flatnonzero(lengths)
        self.counts["texts"] += len(nonempty)
        self.counts["empty"] += len(texts) - len(nonempty)
        for code, count in enumerate(np.bincount(codes[nonempty]).tolist()):
            self.counts[f"codes.before.{code}"] += count
        # All words beyond the vocabulary size have the same id.
        ids = np.minimum(words.ids, np.uint32(self._settings.vocabulary_size))
        for part, chosen in self._parts_of(words, nonempty, test=test):
            some = _Block(
                ids=_segments(ids, (words.ends - lengths)[chosen], lengths[chosen]),
                lengths=lengths[chosen].astype(np.uint32),
                codes=codes[chosen],
            )
            self.parts[part].add(some)
            if part != _TEST:
                values, numbers = np.unique(some.codes, return_counts=True)
                self.training_texts.update(dict(zip(values.tolist(), numbers.tolist(), strict=True)))
                one = np.ones(1, np.int64)
                add_counts(some.ids, 0 * one, len(some.ids) * one, one, self.occurrences)
        if len(self.dictionary) > self._settings.vocabulary_size + _MAX_EXTRA_WORDS:
            known = self.dictionary.join_words(np.arange(self._settings.vocabulary_size))
            self.dictionary.clear()
            self.dictionary.add(known)

    def _parts_of(
        self, words: TokenisedTexts, nonempty: npt.NDArray[np.int64], *, test: bool
    ) -> list[tuple[int, npt.NDArray[np.int64]]]:
        if test:
            return [(_TEST, nonempty)]
        starts = np.concatenate(([0], words.cleaned_ends[:-1]))[nonempty]
        ends = words.cleaned_ends[nonempty] - 1  # without the space after the last word
        found = digests(words.cleaned.data, zip(starts.tolist(), ends.tolist(), strict=True))
        halves = np.frombuffer(found, ">u8").reshape(-1, 2).astype(np.uint64)
        first = in_test_sets(halves[:, 1], _MARGIN * VALIDATION_SHARE)
        part_of = np.where(first, np.uint8(_VALIDATION), np.uint8(_TRAINING))
        if not self._settings.test_input:
            part_of[in_test_sets(halves[:, 0], self._settings.test_share) > 0] = _TEST
        return [(part, nonempty[part_of == part]) for part in _PARTS]


def _segments(
    ids: npt.NDArray[np.uint32], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Return the segments `ids[starts[i] : starts[i] + lengths[i]]` for all i, concatenated."""
    out = np.empty(int(lengths.sum()), np.uint32)
    gather(ids, starts, lengths, np.cumsum(lengths) - lengths, out)
    return out


def _write(
    texts: _EncodedTexts, read: Mapping[str, int], settings: Settings, output: Path, place: str
) -> dict[str, Any]:
    """Write the dataset and return its counts. `read` has the counts of lines and malformed lines."""
    occurrences = texts.occurrences[:-1][: len(texts.dictionary)]
    found = most_frequent_ids(occurrences, texts.dictionary.join_words, settings.vocabulary_size, least=1)
    words = most_frequent(found, settings.vocabulary_size)
    new_ids = np.full(settings.vocabulary_size + 1, UNKNOWN, np.uint32)
    new_ids[texts.dictionary.add(b" ".join(word for word, _ in words))] = FIRST_WORD + np.arange(len(words))
    labels = _labels(texts.counts, settings)
    counts = Counter(read) + texts.counts
    counts["distinct"] = counts["texts"]
    counts.update({name.replace("before", "after"): number for name, number in texts.counts.items() if "." in name})
    with DatasetWriter(output, settings, packed=False, option=place) as writer:
        for split, parts in (("train", (_VALIDATION, _TRAINING)), ("test", (_TEST,))):
            for block in chain.from_iterable(texts.parts[part].blocks() for part in parts):
                rows = RowBlock(
                    tokens=new_ids[block.ids],
                    lengths=block.lengths,
                    labels=labels[block.codes],
                    ratings=np.zeros(len(block.codes), np.uint8) if settings.labelled else block.codes.astype(np.uint8),
                )
                _count(counts, split, rows)
                writer.append(split, rows)
        frequent = ((word.decode(), count) for word, count in words)
        whole = final_counts(
            counts, settings=settings, positive_from=int(np.argmax(labels > 0)), frequent_words=frequent
        )
        writer.finish(vocabulary=[word.decode() for word, _ in words], stopwords=frozenset(), counts=whole)
    return whole


def _labels(counts: Mapping[str, int], settings: Settings) -> _CodeArray:
    """Return the label for each code, of shape (codes,)."""
    if settings.classes:
        return np.arange(settings.class_count, dtype=settings.label_dtype)
    codes = np.arange(256)
    by_code = {code: counts[f"codes.before.{code}"] for code in range(len(LABELS))} if settings.labelled else {}
    return (codes >= first_positive_code(by_code, settings)).astype(np.uint8)


def _count(counts: Counter[str], split: str, rows: RowBlock) -> None:
    counts[split] += len(rows.labels)
    counts[f"positive_{split}"] += int(np.count_nonzero(rows.labels))
    counts["tokens"] += len(rows.tokens)
    counts["unknown_tokens"] += int(np.count_nonzero(rows.tokens == UNKNOWN))
    bins = np.searchsorted(LENGTH_BINS, rows.lengths, side="right") - 1
    for number, count in enumerate(np.bincount(bins, minlength=len(LENGTH_BINS)).tolist()):
        counts[f"lengths.{LENGTH_BINS[number]}"] += count
