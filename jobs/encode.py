"""The job that encodes distinct texts as rows: one part file in the dataset's layout for each part.

In: tasks, each a line with the names of some parts; the mapper itself reads their side files from `--distinct`. Out:
part files under `--parts`, and their counts as records. There is no reducer.

The name of a part file depends on its digest prefix only, and its bytes on its rows only.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from mrjob.protocol import BytesValueProtocol
from orjson import loads

from corpus.dataset import SPLITS, DatasetWriter, RowBlock
from corpus.reading.s3 import is_s3
from corpus.reading.storage import list_files, readable, writable
from corpus.reading.tally import Tally
from corpus.segments import fill_rows
from corpus.settings import Settings
from corpus.text import UNKNOWN, word_ids
from jobs.arrays import Arrays, unpack_arrays
from jobs.choose import read_vocabulary_choice
from jobs.entry_points import run_as_script
from jobs.job import PreprocessingJob
from jobs.records import Record, part_url, side_url
from jobs.settings import read_stopwords

_BLOCK_ROWS = 1 << 15


class Encode(PreprocessingJob):
    """Map: replace the ids of a part by those of the vocabulary, and write its rows to a file."""

    INPUT_PROTOCOL = BytesValueProtocol

    def configure_args(self) -> None:
        super().configure_args()
        self.add_passthru_arg("--distinct", metavar="FOLDER", help="the side files of jobs.deduplicate")
        self.add_passthru_arg("--choice", metavar="FILE", help="what jobs.choose chose")
        self.add_passthru_arg("--parts", metavar="FOLDER", help="where part files go: a folder or s3://...")

    def mapper(self, _: None, task: bytes) -> Iterator[Record]:
        settings = self.settings()
        choice = read_vocabulary_choice(self.options.choice)
        vocabulary = [word for word, _ in choice.vocabulary]
        ids = {word.encode(): number for word, number in word_ids(vocabulary).items()}
        stopwords = read_stopwords(settings.stopwords)
        side_files = set(list_files(self.options.distinct))
        tally = Tally()
        for part in loads(task):
            side_file = side_url(self.options.distinct, part)
            if side_file not in side_files:  # no text has such a digest
                continue
            with readable(side_file) as path:
                packed = path.read_bytes()
            encoded = EncodedPart(unpack_arrays(packed), ids, choice.positive_from, settings)
            with (
                writable(part_url(self.options.parts, part)) as path,
                # Compression is slower than a disk and faster than a network.
                DatasetWriter(path, settings, packed=is_s3(self.options.parts)) as writer,
            ):
                for split in SPLITS:
                    for rows in encoded.blocks(split):
                        writer.append(split, rows)
                        tally.counts.update(_counts(split, rows))
                writer.finish(vocabulary=vocabulary, stopwords=stopwords, counts={})
            self.report_bytes(len(packed), at_once=True)
        yield from tally.records()


class EncodedPart:
    """The rows of a side file, with the ids of the vocabulary (`ids`, by word)."""

    def __init__(self, side: Arrays, ids: Mapping[bytes, int], positive_from: int, settings: Settings) -> None:
        words = side["words"].tobytes().split(b" ")
        self._new_ids = np.fromiter((ids.get(word, UNKNOWN) for word in words), settings.token_dtype, len(words))
        self._side = side
        self._lengths = side["lengths"].astype(np.int64)
        self._starts = np.cumsum(self._lengths) - self._lengths
        self._positive_from = positive_from
        self._settings = settings

    def blocks(self, split: str) -> Iterator[RowBlock]:
        """The rows of a split in order, in blocks of bounded size."""
        chosen = np.flatnonzero(self._side["test"] == SPLITS.index(split))
        for start in range(0, len(chosen), _BLOCK_ROWS):
            block = chosen[start : start + _BLOCK_ROWS]
            tokens = np.zeros((len(block), self._settings.row_length), self._settings.token_dtype)
            fill_rows(self._side["ids"], self._starts[block], self._lengths[block], self._new_ids, tokens)
            codes = self._side["codes"][block]
            labels = (codes >= self._positive_from).astype(np.uint8)
            ratings = np.zeros_like(codes) if self._settings.labelled else codes
            yield RowBlock(tokens, self._side["lengths"][block], labels, ratings)


def _counts(split: str, rows: RowBlock) -> dict[str, int]:
    return {
        f"positive_{split}": int(rows.labels.sum()),
        "tokens": int(rows.lengths.sum(dtype=np.int64)),
        "unknown_tokens": int((rows.tokens == UNKNOWN).sum()),
    }


if __name__ == "__main__":
    run_as_script(Encode)
