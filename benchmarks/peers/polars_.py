"""Preprocessing in Polars: `python -m benchmarks.peers.polars_ INPUT OUTPUT`.

Strict JSON, entities and BLAKE2b need Python. Polars does all the rest. Two threads clean pieces and write them as
Parquet, split by prefixes of the digests. A single query with grouping and sorting took twice the memory at 0.3 GB, and
more for more input. The engine is the streaming one, from Parquet to Parquet.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from benchmarks.peers.contract import is_blank, review
from benchmarks.peers.outcome import in_test_bound, write_counts
from corpus.dataset_settings import Settings
from corpus.text import FIRST_WORD, PADDING, UNKNOWN, load_stopwords

_PIECE = 16 << 20
_PART_BYTES = 64 << 20
_RATINGS = (1, 2, 3, 4, 5)


def preprocess(source: Path, output: Path) -> None:
    """Preprocess a raw file to `output`."""
    counts = Counter[str]()
    parts = 1 + source.stat().st_size // _PART_BYTES
    (output / "rows").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=output) as name:
        work = Path(name)
        with ThreadPoolExecutor(2) as threads:
            for counted in threads.map(lambda piece: _clean(source, work, parts, *piece), _pieces(source)):
                counts.update(counted)
        for part in range(parts):
            _deduplicate(work / f"clean-{part}-*.parquet", work / f"distinct-{part:04}.parquet")
        distinct = sorted(work.glob("distinct-*.parquet"))
        vocabulary = _most_frequent_words(pl.scan_parquet(distinct))
        for path in distinct:
            counts.update(_encode(path, vocabulary, output / "rows" / path.name))
        write_counts(output, counts, vocabulary.to_list())


def _pieces(source: Path) -> Iterator[tuple[int, int]]:
    """Yield start and end of each piece of whole lines."""
    size, begin = source.stat().st_size, 0
    with source.open("rb") as file:
        while begin < size:
            file.seek(begin + _PIECE)
            file.readline()
            end = min(file.tell(), size)
            yield begin, end
            begin = end


def _clean(source: Path, work: Path, parts: int, begin: int, end: int) -> Counter[str]:
    """Write digests, ratings and cleaned texts of a piece to one Parquet file per part, and return its counts."""
    with source.open("rb") as file:
        file.seek(begin)
        lines = [line for line in file.read(end - begin).split(b"\n") if not is_blank(line)]
    found = [found for line in lines if (found := review(line))]
    texts = [text if "&" not in text else unescape(text) for text, _ in found]
    frame = pl.DataFrame({"text": texts, "rating": pl.Series([rating for _, rating in found], dtype=pl.UInt8)})
    lowered = pl.col("text").str.replace_all("\u2019", "'", literal=True).str.to_lowercase()
    # A word begins and ends with a letter, so this also strips apostrophes.
    cleaned = lowered.str.extract_all(r"[a-z](?:[a-z']*[a-z])?").list.join(" ")
    ready = frame.select("rating", cleaned.alias("text")).filter(pl.col("text") != "")
    digests = [blake2b(text.encode(), digest_size=16).digest() for text in ready["text"].to_list()]
    numbers = [(digest[0] << 8 | digest[1]) * parts >> 16 for digest in digests]
    ready = ready.with_columns(pl.Series("digest", digests, pl.Binary), pl.Series("part", numbers))
    for (part,), rows in ready.partition_by("part", as_dict=True, include_key=False).items():
        rows.write_parquet(work / f"clean-{part}-{begin:012}.parquet", compression="lz4")
    return Counter(lines=len(lines), malformed=len(lines) - len(found), texts=len(ready), empty=len(frame) - len(ready))


def _deduplicate(texts: Path, target: Path) -> None:
    """Write one row for each digest, in order, with the modal rating and the number of different ratings."""
    occurred = [(pl.col("rating") == rating).sum().alias(str(rating)) for rating in _RATINGS]
    grouped = pl.scan_parquet(texts).group_by("digest").agg(pl.col("text").first(), *occurred)
    numbers = pl.concat_list(*map(str, _RATINGS))
    # arg_max takes the first maximum: of equally frequent ratings the smallest.
    mode = (numbers.list.arg_max() + _RATINGS[0]).cast(pl.UInt8).alias("rating")
    ratings = pl.sum_horizontal((pl.col(str(rating)) > 0).cast(pl.UInt8) for rating in _RATINGS)
    chosen = grouped.select("digest", "text", mode, ratings.alias("ratings"))
    chosen.sort("digest").sink_parquet(target, compression="lz4", engine="streaming")


def _most_frequent_words(distinct: pl.LazyFrame) -> pl.Series:
    train = distinct.filter(pl.col("digest").bin.slice(0, 8) >= in_test_bound())
    words = train.select(pl.col("text").str.split(" ").explode().alias("word")).group_by("word").len()
    kept = words.filter(~pl.col("word").is_in(sorted(load_stopwords())))
    ranked = kept.sort(["len", "word"], descending=[True, False]).head(Settings().vocabulary_size)
    return ranked.collect(engine="streaming")["word"]


def _encode(texts: Path, vocabulary: pl.Series, target: Path) -> dict[str, int]:
    """Encode distinct texts as rows, and return the counts of these texts."""
    stopwords = sorted(load_stopwords())
    # Stopwords get the id of padding, which no word has. Their ids are removed below.
    ids = [PADDING] * len(stopwords) + list(range(FIRST_WORD, FIRST_WORD + len(vocabulary)))
    of_word = pl.element().replace_strict(
        [*stopwords, *vocabulary], pl.Series(ids, dtype=pl.UInt16), default=UNKNOWN, return_dtype=pl.UInt16
    )
    all_ids = pl.col("text").str.split(" ").list.eval(of_word)
    kept = all_ids.list.eval(pl.element().filter(pl.element() != PADDING)).list.head(Settings().row_length)
    encoded = (
        pl.scan_parquet(texts).select("digest", "rating", "ratings", kept.alias("tokens")).collect(engine="streaming")
    )
    rows = encoded.filter(pl.col("tokens").list.len() > 0)
    rows.select("digest", "rating", "tokens").write_parquet(target)
    return {
        "distinct": len(encoded),
        "conflicting": int((encoded["ratings"] > 1).sum()),
        "wordless": len(encoded) - len(rows),
    }


if __name__ == "__main__":
    preprocess(Path(sys.argv[1]), Path(sys.argv[2]))
