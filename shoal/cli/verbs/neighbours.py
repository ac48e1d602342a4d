"""`shoal neighbours`: for given words, lists the words with the most similar vectors."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from common.errors import ShoalError
from shoal.cli.command import command, option
from shoal.cli.input_options import require_s3
from shoal.cli.output import Result, Table, print_warning

if TYPE_CHECKING:
    from trainer.embeddings.vectors import WordVectors


@command(
    help="For each given word, list the words with the most similar vectors, and the cosines of these vectors. "
    "A word without a vector "
    "is also looked up in lower case; a char-lstm model computes vectors of unknown words from their characters.",
    epilog="Example: shoal neighbours --model vectors.bin guitar album",
)
@option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="FILE_OR_DIR",
    help="output of `shoal embed`, a file of word vectors (word2vec, text or binary, or GloVe), or a folder with a "
    "vectors.bin or vectors.txt; a path or s3://...",
)
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@option("--count", type=click.IntRange(min=1), default=10, metavar="N", help="neighbours per word (default: 10)")
def run(*, model: str, words: Sequence[str], count: int) -> Result:
    require_s3(model)
    vectors = open_vectors(model)
    found: dict[str, list[tuple[str, float]]] = {}
    unknown: list[str] = []
    for word in words:
        known = vectors.including([word])
        if known.find(word) is None:
            unknown.append(word)
        else:
            found[word] = known.nearest(word, count)
    if unknown:
        raise ShoalError(
            f"{model} has no vector for: {', '.join(unknown)}; leave out these words, or try other forms of them"
        )
    content = {word: [{"word": name, "cosine": cosine} for name, cosine in nearest] for word, nearest in found.items()}
    parts = [Table(nearest, {f"near {word}": "{word}", "cosine": "{cosine:.3f}"}) for word, nearest in content.items()]
    return Result({"model": model, "neighbours": content}, parts)


def open_vectors(model: str) -> "WordVectors":
    """Return the word vectors of --model; print a warning if vectors in the file were left out. Raises DataError."""
    from trainer.embeddings.model_folder import open_words

    vectors = open_words(model)
    if vectors.note:
        print_warning(vectors.note)
    return vectors
