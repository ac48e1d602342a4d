"""What the commands on word vectors share: the option that names them, and how they are opened."""

from typing import TYPE_CHECKING

import click

from bootstrap.cli.command import option
from bootstrap.cli.output import print_warning

if TYPE_CHECKING:
    from trainer.embeddings.vectors import WordVectors

model_option = option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="FILE_OR_DIR",
    help="word embeddings in the format of word2vec, text or binary, or of GloVe; or a folder with a vectors.bin or "
    "vectors.txt, such as the --output of `shoal train`; a path or s3://...",
)
"""Declares --model."""


def open_model(model: str) -> "WordVectors":
    """The vectors that --model names, with a warning where some of a file were left out. Raises DataError."""
    from trainer.embeddings.model_folder import open_words

    vectors = open_words(model)
    if vectors.note:
        print_warning(vectors.note)
    return vectors
