"""`shoal evaluate`: how good a classifier is on files with ratings or labels; how good word embeddings are, by human
scores of pairs of words, and by analogies."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import command, described_options, option
from bootstrap.cli.input_options import NOTES, reading_options, require_s3, scale_suggested
from bootstrap.cli.neighbours import open_vectors
from bootstrap.cli.output import Result, percent, table
from bootstrap.cli.predict import RATING_OPTIONS, require_files_for
from bootstrap.progress import Bars
from common.errors import UsageError

if TYPE_CHECKING:
    from trainer.embeddings.analogy import AnalogyResult
    from trainer.embeddings.similarity import SimilarityResult


@command(
    short_help="evaluate a classifier on files, or word embeddings",
    help="Compare a classifier's predictions with the ratings or labels of files: accuracy, macro-F1, log loss, "
    "precision and recall of each class, confusion matrix, and calibration (of the texts whose predicted class has "
    "about this probability, the share that is right). Or compare "
    "word embeddings with human scores of pairs of words (Spearman's rank correlation of the scores "
    "with the cosines), and let them answer analogies: which word is to c as b is to a (3CosAdd and 3CosMul, all but "
    "the three given words)? Pairs and questions with a word that has no vector are left out, and counted. In a "
    "folder of --model char-lstm every word of a pair has a vector.",
    epilog="""\
\b
Examples:
  shoal evaluate --model results/model new.json.gz
  shoal evaluate --model vectors.bin --similarity EN-WS-353-ALL.txt
  shoal evaluate --model vectors.txt --analogy questions-words.txt --json
""",
    notes={"How it is read": NOTES["How it is read"]},
)
@option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="FILE_OR_DIR",
    help="the output of `shoal train`; or word embeddings in the format of word2vec or GloVe, or a folder with a "
    "vectors.bin or vectors.txt; a path or s3://...",
)
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
@option(
    "--similarity", several=True, type=click.Path(), metavar="FILE", help="sets of pairs: two words and a score a line"
)
@option(
    "--analogy",
    several=True,
    type=click.Path(),
    metavar="FILE",
    help="sets of analogies: Google's, four words a line; or MSR's, a file .questions with its .answers beside it",
)
@reading_options
@described_options(RATING_OPTIONS, group="Ratings of the files")
@click.pass_obj
def run(
    typed: list[str],
    /,
    *,
    model: str,
    files: tuple[str, ...],
    similarity: Sequence[str],
    analogy: Sequence[str],
    **options: Any,
) -> Result:
    if files and (similarity or analogy):
        raise UsageError(
            "files are for a classifier, --similarity and --analogy for word embeddings; give one of these"
        )
    if files:
        from bootstrap.cli.classifier_scores import evaluate_classifier

        require_s3(model, *files)
        with scale_suggested(typed):
            return evaluate_classifier(model, files, options)
    if not (similarity or analogy):
        raise UsageError(
            "there is nothing to evaluate on; give files for a classifier, or --similarity FILE..., --analogy FILE..., "
            "or both for word embeddings"
        )
    require_files_for(options)
    from trainer.embeddings.analogy import analogies, read_questions, total
    from trainer.embeddings.similarity import read_pairs, words_of
    from trainer.embeddings.similarity import similarity as correlation

    require_s3(model, *similarity, *analogy)
    pairs = {name: read_pairs(name) for name in similarity}
    questions = {name: read_questions(name) for name in analogy}
    vectors = open_vectors(model)
    by_pairs = {name: correlation(vectors.including(words_of(each)), each) for name, each in pairs.items()}
    by_questions: dict[str, dict[str, AnalogyResult]] = {}
    with Bars(unit="question") as bars:
        for name, each in questions.items():
            bars.stage(PurePosixPath(name).name, len(each))
            by_questions[name] = dict(analogies(vectors, each, bars.at))
    content = {
        "model": model,
        "words": len(vectors.words),
        "size": vectors.matrix.shape[1],
        "similarity": {name: each._asdict() for name, each in by_pairs.items()},
        "analogy": {
            name: {"all": _plain(total(each)), "sections": {section: _plain(one) for section, one in each.items()}}
            for name, each in by_questions.items()
        },
    }
    parts = [_pairs_table(by_pairs)] if by_pairs else []
    parts += [_questions_table(name, each, total(each)) for name, each in by_questions.items()]
    return Result(content, parts)


def _pairs_table(found: "dict[str, SimilarityResult]") -> str:
    rows = [
        (
            PurePosixPath(name).name,
            "-" if each.spearman is None else f"{each.spearman:.3f}",
            f"{each.known:,}",
            f"{each.pairs:,}",
        )
        for name, each in found.items()
    ]
    return table(rows, ("similarity", "Spearman", "known", "pairs"), right=(1, 2, 3), ruled=True)


def _questions_table(name: str, found: "dict[str, AnalogyResult]", whole: "AnalogyResult") -> str:
    sections = found if len(found) > 1 else {}
    rows = [
        (section, _share(each.add), _share(each.mul), f"{each.known:,}", f"{each.questions:,}")
        for section, each in {**sections, "all": whole}.items()
    ]
    heads = (PurePosixPath(name).name, "3CosAdd", "3CosMul", "known", "questions")
    return table(rows, heads, right=(1, 2, 3, 4), ruled=True)


def _plain(found: "AnalogyResult") -> dict[str, Any]:
    return {"add": found.add, "mul": found.mul, "known": found.known, "questions": found.questions}


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)
