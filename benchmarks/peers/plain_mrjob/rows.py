"""Distinct texts to rows of ids."""

from collections.abc import Iterator
from pathlib import Path

from mrjob.job import MRJob
from mrjob.protocol import BytesProtocol

from corpus.dataset_settings import Settings
from corpus.text import encode_words, word_ids

Pair = tuple[bytes, bytes]


class Rows(MRJob):
    """Distinct texts to rows of ids, in the order of their digests."""

    INPUT_PROTOCOL = INTERNAL_PROTOCOL = OUTPUT_PROTOCOL = BytesProtocol

    def configure_args(self) -> None:
        super().configure_args()
        self.add_file_arg("--vocabulary")

    def mapper_init(self) -> None:
        self.ids = word_ids(Path(self.options.vocabulary).read_text().split())

    def mapper(self, key: bytes, value: bytes) -> Iterator[Pair]:
        rating, _, kept = value.partition(b"\t")
        row = encode_words(kept.decode().split(" "), self.ids, frozenset(), Settings().row_length)
        yield key, rating + b"\t" + " ".join(map(str, row)).encode()

    def reducer(self, key: bytes, values: Iterator[bytes]) -> Iterator[Pair]:
        for value in values:
            yield key, value


if __name__ == "__main__":
    Rows.run()
