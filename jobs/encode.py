"""Distinct texts to rows: a part file for each prefix of the digest, its rows in the order of their digests.

In: the output of `deduplicate`, and the vocabulary. Out: part files in the dataset's layout under `--parts`
(a folder or s3://...), and as records the counts of what is in them.

A part is written whole, under a name that its prefix alone decides, with bytes that its rows alone decide:
a retry, or a twin of the task, writes the same again. The easy mistake is to let a reducer of Hadoop's
choice name the file.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from corpus.dataset import DatasetWriter, Rows, count_rows
from corpus.text import encode, in_test_set, load_stopwords, word_ids
from jobs.job import Job
from jobs.records import COUNTS_KEY, Record, counts_record, read_distinct_text, sum_counts
from jobs.settings import read_settings
from jobs.storage import open_lines, part_url, writable
from jobs.task import run_as_script

MAX_PART_BITS = 16


class Encode(Job):
    """Map: words to ids. Reduce: sort a part's rows by digest and write them."""

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--vocabulary", metavar="FILE", help="the chosen words, a line each")
        self.add_passthru_arg("--parts", metavar="FOLDER", help="where part files go: a folder or s3://...")
        self.add_passthru_arg("--part-bits", type=int, default=3, help="part files are 2 to the power of this")

    def mapper_init(self) -> None:
        self._init()
        self.ids = word_ids(self.vocabulary)

    def mapper(self, key: bytes, value: bytes) -> Iterator[Record]:
        if key == COUNTS_KEY:
            yield key, value
            return
        self.report(len(value))
        text = read_distinct_text(key, value)
        row = encode(text.cleaned.split(" "), self.ids, self.stopwords, self.settings.row_length)
        if row:
            yield (
                _part_of(text.digest, self.options.part_bits).encode(),
                b"%s\t%d\t%s"
                % (
                    text.digest.encode(),
                    text.rating,
                    " ".join(map(str, row)).encode(),
                ),
            )
        else:
            self.counts["wordless"] += 1

    def mapper_final(self) -> Iterator[Record]:
        self.report(0, at_once=True)
        yield counts_record(self.counts)

    def reducer_init(self) -> None:
        self._init()

    def reducer(self, key: bytes, values: Iterable[bytes]) -> Iterator[Record]:
        if key == COUNTS_KEY:
            yield counts_record(sum_counts(values))
            return
        train, test = self._sorted_rows(values)
        counts = count_rows(train, test)
        with (
            writable(part_url(self.options.parts, key.decode())) as path,
            DatasetWriter(path, self.settings) as writer,
        ):
            writer.append("train", train)
            writer.append("test", test)
            writer.finish(vocabulary=self.vocabulary, stopwords=self.stopwords, counts=counts)
        yield counts_record(Counter(counts))

    def _init(self) -> None:
        self.settings = read_settings(self.options)
        self.stopwords = load_stopwords(self.settings.stopwords)
        self.vocabulary = [line.decode().rstrip("\n") for line in open_lines(self.options.vocabulary)]
        self.counts: Counter[str] = Counter()

    def _sorted_rows(self, values: Iterable[bytes]) -> tuple[Rows, Rows]:
        """The rows of train and test among a part's records, each in ascending order of digest."""
        dtype = self.settings.token_dtype
        splits: tuple[list[tuple[bytes, int, bytes]], list[tuple[bytes, int, bytes]]] = ([], [])
        for value in values:
            hexadecimal, rating, ids = value.split(b"\t")
            digest = bytes.fromhex(hexadecimal.decode())
            row = np.fromstring(ids.decode(), dtype=dtype, sep=" ").tobytes()
            splits[in_test_set(digest, self.settings.test_share)].append((digest, int(rating), row))
        train, test = (self._rows(sorted(split)) for split in splits)
        return train, test

    def _rows(self, split: list[tuple[bytes, int, bytes]]) -> Rows:
        dtype = self.settings.token_dtype
        tokens = np.zeros((len(split), self.settings.row_length), dtype=dtype)
        lengths = np.zeros(len(split), dtype=np.uint16)
        for index, (_, _, row) in enumerate(split):
            ids = np.frombuffer(row, dtype=dtype)
            tokens[index, : len(ids)] = ids
            lengths[index] = len(ids)
        ratings = np.array([rating for _, rating, _ in split], dtype=np.uint8)
        labels = (ratings >= self.settings.positive_from).astype(np.uint8)
        return Rows(tokens, lengths, labels, ratings)


def _part_of(hexadecimal: str, bits: int) -> str:
    """The part that a digest belongs to: its first bits, so that the parts' names are in the digests' order."""
    prefix = int(hexadecimal[:4], 16) >> (MAX_PART_BITS - bits)
    return f"{prefix:04x}"


if __name__ == "__main__":
    run_as_script(Encode)
