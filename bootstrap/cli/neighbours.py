"""`shoal neighbours`: the words whose vectors are nearest to those of given ones."""

from collections.abc import Sequence

import click

from bootstrap.cli.command import command, option
from bootstrap.cli.input_options import require_s3
from bootstrap.cli.output import json_option, show, table
from bootstrap.cli.vectors import model_option, open_model
from common.errors import ShoalError


@command(
    short_help="list the words nearest to given ones",
    help="List for each word those with the most similar vectors, and the cosines. A word that has no vector is looked "
    "for in lower case, too; a folder of --model char-lstm then reads one off its characters.",
    epilog="Example: shoal neighbours --model vectors.bin guitar album",
)
@model_option
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@option("--count", type=click.IntRange(min=1), default=10, metavar="N", help="neighbours of each word (default: 10)")
@json_option
def run(*, model: str, words: Sequence[str], count: int, as_json: bool) -> int:
    require_s3(model)
    vectors = open_model(model)
    found: dict[str, list[tuple[str, float]]] = {}
    unknown: list[str] = []
    for word in words:
        known = vectors.including([word])
        if known.find(word) is None:
            unknown.append(word)
        else:
            found[word] = known.nearest(word, count)
    if unknown:
        raise ShoalError(f"{model} has no vector of: {', '.join(unknown)}; leave it out, or give another form of it")
    parts = [
        table([(name, f"{cosine:.3f}") for name, cosine in nearest], (word, "cosine"), right=(1,), ruled=True)
        for word, nearest in found.items()
    ]
    content = {word: [{"word": name, "cosine": cosine} for name, cosine in nearest] for word, nearest in found.items()}
    show({"model": model, "neighbours": content}, "\n\n".join(parts), as_json=as_json)
    return 0
