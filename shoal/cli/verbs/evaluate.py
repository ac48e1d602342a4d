"""`shoal evaluate`: evaluates a classifier on files with ratings or labels, or word embeddings on human similarity
scores and analogies."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from common.errors import DataError, UsageError
from common.progress import reporter
from corpus.reading.tally import list_values
from jobs.job_settings import RATING_SCALE
from shoal.cli.command import command, described_options, option
from shoal.cli.input_options import FORMAT, NOTES, reading_options, require_s3
from shoal.cli.output import Part, Result, Table, print_warning
from shoal.cli.training_result import score_rows
from shoal.cli.verbs.neighbours import open_vectors
from shoal.cli.verbs.predict import find_files, require_files_for, require_no_option_of_two_classes
from shoal.prediction.model import open_model
from shoal.progress import Bars

if TYPE_CHECKING:
    from trainer.embeddings.evaluation import AnalogyResult

_RATING_OPTIONS = tuple(
    replace(each, default=None, text=f"{each.text} (default: as the model was trained)") if each.default else each
    for each in RATING_SCALE
)
_CLASSES = Table(
    "classes",
    {
        "class": "{key}",
        "precision": "{precision:percent}",
        "recall": "{recall:percent}",
        "F1": "{f1:.3f}",
        "texts": "{texts:,}",
    },
)
_CALIBRATION = Table(
    "calibration",
    {
        "probability": "from {from:.1f}",
        "mean": "{probability:percent}",
        "correct": "{right:percent}",
        "texts": "{texts:,}",
    },
)
_SIMILARITY = Table(
    "similarity",
    {
        "similarity": lambda each: PurePosixPath(each["key"]).name,
        "Spearman": "{spearman:.3f}",
        "known": "{known:,}",
        "pairs": "{pairs:,}",
    },
)
_ANALOGY = {"3CosAdd": "{add:percent}", "3CosMul": "{mul:percent}", "known": "{known:,}", "questions": "{questions:,}"}


@command(
    help="Evaluate a classifier on files with ratings or labels: accuracy, macro-F1, log loss, precision and recall of "
    "each class, confusion matrix and calibration. Or evaluate word embeddings: on human similarity scores of word "
    "pairs (Spearman's rank correlation with the cosines), and on analogies (3CosAdd and 3CosMul; the three "
    "given words are no candidates). Pairs and questions with unknown words are skipped and counted; a "
    "char-lstm model knows every word.",
    epilog="""\
\b
Examples:
  shoal evaluate --model results/model new.json.gz
  shoal evaluate --model vectors.bin --similarity EN-WS-353-ALL.txt
  shoal evaluate --model vectors.txt --analogy questions-words.txt --json
""",
    notes={FORMAT: NOTES[FORMAT]},
)
@option(
    "--model",
    required=True,
    type=click.Path(),
    metavar="FILE_OR_DIR",
    help="output of `shoal train` or `shoal embed`, a file of word vectors (word2vec or GloVe), or a folder with a "
    "vectors.bin or vectors.txt; a path or s3://...",
)
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
@option(
    "--similarity",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="files of word pairs with similarity scores: two words and a score per line",
)
@option(
    "--analogy",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="files of analogies, in Google's format (four words per line) or in MSR's format (a .questions file, "
    "and an .answers file in the same folder)",
)
@reading_options
@described_options(_RATING_OPTIONS, group="Ratings in the files")
def run(
    *,
    model: str,
    files: tuple[str, ...],
    similarity: Sequence[str],
    analogy: Sequence[str],
    **options: Any,
) -> Result:
    if files and (similarity or analogy):
        raise UsageError(
            "FILE evaluates a classifier, but --similarity and --analogy evaluate word embeddings; leave out "
            "FILE, or both options"
        )
    if files:
        require_s3(model, *files)
        return _evaluate_classifier(model, files, options)
    if not (similarity or analogy):
        raise UsageError(
            "nothing to evaluate on; give files for a classifier, or --similarity FILE... or --analogy FILE... for "
            "word embeddings"
        )
    require_files_for(options)
    return _evaluate_vectors(model, similarity, analogy)


def _evaluate_classifier(model: str, files: Sequence[str], options: dict[str, Any]) -> Result:
    from corpus.reading.acceptance import DEFAULT_MAX_MALFORMED, check_negative_labels, label_notes
    from corpus.reading.tally import Tally, other_labels
    from shoal.prediction.scores import ScoredAnswers
    from shoal.prediction.texts import label_texts, read_text_files

    loaded = open_model(model)
    if loaded.classes:
        require_no_option_of_two_classes(options, *(each.name for each in _RATING_OPTIONS))
    text_files = find_files(loaded, files, options)
    if not loaded.classes:
        text_files.inspection.check_values(text_files.settings, DEFAULT_MAX_MALFORMED)
    tally, answers, done = Tally(), ScoredAnswers(classes=loaded.classes), 0
    with Bars():
        expected, batches = text_files.inspection.plain_bytes, read_text_files(text_files, tally)
        reporter().stage("evaluate", expected)
        for batch, predictions in label_texts(
            loaded, batches, tally, threshold=loaded.loss.threshold, expected=expected
        ):
            answers.add(batch.codes, predictions)
            done += batch.raw_bytes
            reporter().at(done)
    if answers.others and not answers.counts:
        raise DataError(
            f"the input's labels, such as {list_values(text_files.inspection.values)}, are not classes of the model; "
            "choose the label field with --label-field, or use a model with these classes"
        )
    if not answers.counts:
        raise DataError(f"{model} knows no word of the input; give texts in the language of its training texts")
    check_negative_labels(tally, DEFAULT_MAX_MALFORMED, text_files.settings, "evaluate other files")
    for note in label_notes(other_labels(tally.counts), text_files.settings):
        print_warning(note)
    scores = answers.scores(text_files.settings, loaded.class_names)
    left_out = {"unknown": answers.unknown, "other_labels": answers.others, "malformed": tally.counts["malformed"]}
    texts = answers.counts.total()
    rows = score_rows(texts, scores, scores["confusion"], **left_out)
    content = {"model": model, "texts": texts, **left_out, **scores}
    return Result(content, [rows, _CLASSES, _CALIBRATION])


def _evaluate_vectors(model: str, similarity: Sequence[str], analogy: Sequence[str]) -> Result:
    from trainer.embeddings.evaluation import analogies, read_pairs, read_questions, total, words_of
    from trainer.embeddings.evaluation import similarity as correlation

    require_s3(model, *similarity, *analogy)
    pairs = {name: read_pairs(name) for name in similarity}
    questions = {name: read_questions(name) for name in analogy}
    vectors = open_vectors(model)
    by_pairs = {name: correlation(vectors.including(words_of(each)), each) for name, each in pairs.items()}
    by_questions: dict[str, dict[str, AnalogyResult]] = {}
    with Bars(unit="question"):
        for name, each in questions.items():
            reporter().stage(PurePosixPath(name).name, len(each))
            by_questions[name] = dict(analogies(vectors, each, reporter().at))
    content: dict[str, Any] = {
        "model": model,
        "words": len(vectors.words),
        "size": vectors.matrix.shape[1],
        "similarity": {name: each._asdict() for name, each in by_pairs.items()},
        "analogy": {
            name: {"all": _plain(total(each)), "sections": {section: _plain(one) for section, one in each.items()}}
            for name, each in by_questions.items()
        },
    }
    parts: list[Part] = [_SIMILARITY] if by_pairs else []
    for name, by_section in content["analogy"].items():
        sections = by_section["sections"] if len(by_section["sections"]) > 1 else {}
        parts.append(
            Table(
                {**sections, "total": by_section["all"]},
                {f"analogies of {PurePosixPath(name).name}": "{key}", **_ANALOGY},
            )
        )
    return Result(content, parts)


def _plain(result: "AnalogyResult") -> dict[str, Any]:
    return {"add": result.add, "mul": result.mul, "known": result.known, "questions": result.questions}
