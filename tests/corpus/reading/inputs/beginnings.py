"""Beginnings of review files, and how files with them are understood."""

from pathlib import Path

from corpus.reading.formats import Format
from corpus.reading.inputs.understanding import Understanding, understand_inputs
from corpus.reading.sources import Inputs, ReadingOptions
from tests.reviews import json_lines

SNAP_2014 = json_lines(
    {"reviewerID": "A1", "reviewText": "a fine lamp", "overall": 5.0, "summary": "Fine"},
    {"reviewerID": "A2", "reviewText": "broke at once", "overall": 1.0, "summary": "Bad"},
)
SNAP_2023 = json_lines(
    {"rating": 5.0, "title": "Fine", "text": "a fine lamp", "images": [], "verified_purchase": True},
    {"rating": 1.0, "title": "Bad", "text": "broke at once", "images": [], "verified_purchase": False},
)
AMAZON = b"marketplace\tstar_rating\treview_headline\treview_body\nUS\t5\tFine\ta lamp\nUS\t1\tBad\tbroke\n"
FASTTEXT = b"__label__2 a fine lamp\n__label__1 broke at once\n"


def written(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


def understood(folder: Path, name: str, content: bytes, **options: object) -> Understanding:
    return understand_inputs(Inputs(files=(written(folder, name, content),), options=ReadingOptions(**options)))  # type: ignore[arg-type]


def json_of(*text: str, value: str) -> Format:
    return Format(kind="json", text=text, value=value)
