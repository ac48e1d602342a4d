"""What the commands on word vectors share: the option that names them, and how they are opened."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bootstrap.cli.command import option

if TYPE_CHECKING:
    from trainer.embeddings.vectors import WordVectors

_FILES = ("vectors.bin", "vectors.txt")

model_option = option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="FILE_OR_DIR",
    help="vectors of words in the format of word2vec, text or binary, a path or s3://...; or a folder with a "
    f"{' or '.join(_FILES)}",
)
"""Declares --model."""


def open_vectors(model: str) -> "WordVectors":
    """The vectors that --model names. Raises DataError."""
    from trainer.embeddings.vectors import read_vectors

    inside = [path for name in _FILES if (path := Path(model) / name).is_file()]
    return read_vectors(str(inside[0]) if inside else model)
