"""`shoal predict`: texts in, a label and a probability a line out."""

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from bootstrap.errors import ShoalError
from corpus.errors import DataError

if TYPE_CHECKING:
    from trainer.predict import Model

_AT_ONCE = 2048
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
    texts = _texts(args.files)
    while block := list(islice(texts, _AT_ONCE)):
        for text, said in zip(block, predict(model, block), strict=True):
            label, probability = _LABELS[said.label], round(said.probability, 4)
            if args.json:
                print(json.dumps({"label": label, "probability": probability, "text": text}))  # noqa: T201
            else:
                print(f"{label}\t{probability:.4f}\t{text}")  # noqa: T201
    return 0


def _load(address: str) -> "Model":
    from trainer.predict import FILE_NAME, load_model

    if not address.startswith("s3://"):
        return load_model(address)
    import boto3

    from bootstrap import objects

    place = objects.parse(address if address.endswith(FILE_NAME) else f"{address.rstrip('/')}/{FILE_NAME}")
    with TemporaryDirectory(prefix="shoal-model-") as folder:
        if not objects.download(boto3.client("s3"), place, Path(folder) / FILE_NAME):
            raise ShoalError(f"there is no model at {place}; check the address")
        return load_model(folder)


def _texts(files: list[Path]) -> Iterator[str]:
    for path in files:
        try:
            with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
                yield from (line.rstrip("\r\n") for line in lines)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
    if not files:
        yield from (line.rstrip("\r\n") for line in sys.stdin)
