"""`shoal predict`: texts in, a label and a probability a line out."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from bootstrap.errors import ShoalError
from corpus.errors import DataError

if TYPE_CHECKING:
    from trainer.predict import Model

_AT_ONCE = 1 << 18
_LABELS = {0: "negative", 1: "positive", None: "unknown"}


def add(verbs: Any) -> argparse.ArgumentParser:
    """Declare the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "predict",
        help="label texts with a trained model",
        description="Read texts, one a line, and print for each its label, the probability that it is positive, and "
        "the text. A text without a known kind of word is 'unknown'.",
        epilog="Example: echo 'broke after a week' | shoal predict --model results/model",
    )
    parser.add_argument(
        "--model", required=True, metavar="DIR_OR_S3", help="what `shoal train` made: its output folder, or s3://..."
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="text files (default: standard input)")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line")
    return parser


def run(args: argparse.Namespace) -> int:
    """Do it."""
    from trainer.predict import predict

    model = _load(args.model)
    for block in _blocks(args.files):
        for text, said in zip(block, predict(model, block), strict=True):
            label, probability = _LABELS[said.label], round(said.probability, 4)
            if args.json:
                print(json.dumps({"label": label, "probability": probability, "text": text}))  # noqa: T201
            else:
                print(f"{label}\t{probability:.4f}\t{text}")  # noqa: T201
        sys.stdout.flush()
    return 0


def _load(address: str) -> "Model":
    from trainer.predict import FILE_NAME, load_model

    if not address.startswith("s3://"):
        return load_model(address)
    import boto3

    from bootstrap import objects

    place = objects.parse(address if address.endswith(FILE_NAME) else f"{address.rstrip('/')}/{FILE_NAME}")
    with TemporaryDirectory(prefix="shoal-model-") as folder:
        if not objects.exists(s3 := boto3.client("s3"), place):
            raise ShoalError(f"there is no model at {place}; check the address")
        objects.save(s3, place, Path(folder) / FILE_NAME)
        return load_model(folder)


def _blocks(files: list[Path]) -> Iterator[list[str]]:
    """The texts of all files, or of standard input, as many at a time as are there to be read."""
    for path in files:
        try:
            with path.open("rb") as opened:
                yield from _lines(opened)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
    if not files:
        yield from _lines(sys.stdin.buffer)


def _lines(file: BinaryIO) -> Iterator[list[str]]:
    rest = b""
    while read := file.read1(_AT_ONCE):  # type: ignore[attr-defined]
        *lines, rest = (rest + read).split(b"\n")
        if lines:
            yield [line.rstrip(b"\r").decode("utf-8", "replace") for line in lines]
    if rest:
        yield [rest.decode("utf-8", "replace")]
