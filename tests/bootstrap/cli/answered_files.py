"""Writes the same five rated texts in every supported format; each writer returns the command's arguments."""

import gzip
import json
from pathlib import Path

FIVE = [("good lamp", 5), ("bad lamp", 1), ("fair lamp", 2), ("good", 4), ("dull", 4)]
"""Texts with ratings. With a threshold of 0.5 the known model is wrong about the third and the last."""


def json_lines(records: list[tuple[str, int]]) -> bytes:
    return b"".join(json.dumps({"reviewText": text, "overall": rating}).encode() + b"\n" for text, rating in records)


def as_json(path: Path) -> list[str]:
    (path / "a.json").write_bytes(json_lines(FIVE))
    return ["a.json"]


def as_gzip(path: Path) -> list[str]:
    (path / "a.json.gz").write_bytes(gzip.compress(json_lines(FIVE)))
    return ["a.json.gz"]


def as_csv(path: Path) -> list[str]:
    lines = [f'"{text}",{rating}' for text, rating in FIVE]
    (path / "a.csv").write_text("\n".join(["said,stars", *lines]))
    return ["a.csv", "--text-field", "said"]


def as_labels(path: Path) -> list[str]:
    (path / "a.csv").write_text("".join(f"{'pos' if rating > 3 else 'neg'},{text}\n" for text, rating in FIVE))
    return ["a.csv"]


def as_parquet(path: Path) -> list[str]:
    import pyarrow as pa
    from pyarrow import parquet

    texts, ratings = zip(*FIVE, strict=True)
    parquet.write_table(pa.table({"text": texts, "rating": ratings}), path / "a.parquet")
    return ["a.parquet"]


def as_folder(path: Path) -> list[str]:
    (path / "many").mkdir()
    (path / "many" / "1.json").write_bytes(json_lines(FIVE[:2]))
    (path / "many" / "2.json.gz").write_bytes(gzip.compress(json_lines(FIVE[2:])))
    return ["many"]
