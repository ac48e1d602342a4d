"""Preprocessing in PySpark: `python -m benchmarks.peers.spark INPUT OUTPUT`.

It uses DataFrames: grouping, counting of words and sorting happen in the JVM. Work that needs Python (strict JSON,
entities, BLAKE2b, ids) gets whole Arrow batches. Intermediate files are Parquet.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from functools import reduce
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from pyspark import Accumulator
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.peers.contract import cleaned_words, is_blank, review
from benchmarks.peers.outcome import in_test_bound, write_counts
from corpus.dataset_settings import Settings
from corpus.text import FIRST_WORD, UNKNOWN, load_stopwords

_CORES = 2
_RATINGS = (1, 2, 3, 4, 5)
_OPTIONS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.files.maxPartitionBytes": str(64 << 20),
    # Equal to a partition, so that no two files share a partition, which would change the order of rows.
    "spark.sql.files.openCostInBytes": str(64 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.parquet.compression.codec": "lz4",
    "spark.python.worker.reuse": "true",
}


def preprocess(source: Path, output: Path) -> None:
    """Preprocess a raw file to `output`."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with TemporaryDirectory(dir=output) as work:
        builder = SparkSession.builder.master(f"local[{_CORES}]").appName("preprocess").config("spark.local.dir", work)
        for name, value in _OPTIONS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            _preprocess(spark, str(source), str(output), work)
        finally:
            spark.stop()


def _preprocess(spark: SparkSession, source: str, output: str, work: str) -> None:
    counts = {name: spark.sparkContext.accumulator(0) for name in ("lines", "malformed", "empty", "texts")}
    # Read bytes, because Spark silently repairs broken UTF-8 in text.
    lines = spark.read.option("lineSep", "\n").text(source).select(F.col("value").cast("binary"))
    texts = lines.mapInArrow(lambda batches: _clean(batches, counts), "digest binary, rating byte, kept string")
    _deduplicated(texts).orderBy("digest").write.parquet(f"{work}/distinct")
    distinct = spark.read.parquet(f"{work}/distinct")
    found = distinct.agg(
        F.count("*").alias("distinct"),
        F.sum((F.col("ratings") > 1).cast("int")).alias("conflicting"),
        F.sum((F.col("kept") == "").cast("int")).alias("wordless"),
    ).collect()[0]
    rows = distinct.where("kept != ''")
    vocabulary = _most_frequent_words(rows)
    ids = spark.sparkContext.broadcast({word: FIRST_WORD + rank for rank, word in enumerate(vocabulary)})
    encoded = rows.mapInArrow(
        lambda batches: _encode(batches, ids.value), "digest binary, rating byte, tokens array<int>"
    )
    encoded.write.parquet(f"{output}/rows")
    write_counts(Path(output), {**{name: count.value for name, count in counts.items()}, **found.asDict()}, vocabulary)


def _clean(batches: Iterable[pa.RecordBatch], counts: dict[str, Accumulator[int]]) -> Iterator[pa.RecordBatch]:
    """Yield digest, rating and kept words of all lines with words."""
    stopwords = frozenset(word.encode() for word in load_stopwords())
    for batch in batches:
        lines = [line for line in batch.column(0).to_pylist() if not is_blank(line)]
        found = [found for line in lines if (found := review(line))]
        cleaned = [(words, rating) for text, rating in found if (words := cleaned_words(text))]
        for name, number in (
            ("lines", len(lines)),
            ("malformed", len(lines) - len(found)),
            ("empty", len(found) - len(cleaned)),
            ("texts", len(cleaned)),
        ):
            counts[name].add(number)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([blake2b(b" ".join(words), digest_size=16).digest() for words, _ in cleaned], pa.binary()),
                pa.array([rating for _, rating in cleaned], pa.int8()),
                pa.array(
                    [b" ".join([w for w in words if w not in stopwords]) for words, _ in cleaned], pa.binary()
                ).cast(pa.string()),
            ],
            names=["digest", "rating", "kept"],
        )


def _deduplicated(texts: DataFrame) -> DataFrame:
    """Return one row for each digest, with the modal rating and the number of different ratings."""
    occurred = [F.sum((F.col("rating") == rating).cast("int")).alias(f"r{rating}") for rating in _RATINGS]
    grouped = texts.groupBy("digest").agg(F.first("kept").alias("kept"), *occurred)
    most = F.greatest(*(F.col(f"r{rating}") for rating in _RATINGS))
    mode = F.coalesce(*(F.when(F.col(f"r{rating}") == most, F.lit(rating)) for rating in _RATINGS))
    ratings = reduce(Column.__add__, ((F.col(f"r{rating}") > 0).cast("int") for rating in _RATINGS))
    return grouped.select("digest", "kept", mode.cast("byte").alias("rating"), ratings.alias("ratings"))


def _most_frequent_words(rows: DataFrame) -> list[str]:
    train = rows.where(F.substring("digest", 1, 8) >= F.lit(bytearray(in_test_bound())))
    words = train.select(F.explode(F.split("kept", " ")).alias("word")).groupBy("word").count()
    ranked = words.orderBy(F.col("count").desc(), "word").limit(Settings().vocabulary_size)
    return [row["word"] for row in ranked.collect()]


def _encode(batches: Iterable[pa.RecordBatch], ids: dict[str, int]) -> Iterator[pa.RecordBatch]:
    length = Settings().row_length
    for batch in batches:
        kept = batch.column("kept").to_pylist()
        tokens = [[ids.get(word, UNKNOWN) for word in text.split(" ", length)[:length]] for text in kept]
        yield pa.RecordBatch.from_arrays(
            [batch.column("digest"), batch.column("rating"), pa.array(tokens, pa.list_(pa.int32()))],
            names=["digest", "rating", "tokens"],
        )


if __name__ == "__main__":
    preprocess(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
