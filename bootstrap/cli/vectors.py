"""What the commands on word vectors share: the option that names them."""

import click

from bootstrap.cli.command import option

model_option = option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="FILE_OR_DIR",
    help="word embeddings in the format of word2vec, text or binary; or a folder with a vectors.bin or vectors.txt, "
    "such as the --output of `shoal train`; a path or s3://...",
)
"""Declares --model."""
