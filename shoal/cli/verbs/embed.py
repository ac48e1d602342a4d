"""`shoal embed`: learns word embeddings from text."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common.errors import DataError, TrainingError, UsageError
from common.options import flag
from corpus.reading.inputs.finding import check_sources
from corpus.stream.records import text_fields
from corpus.stream.stream_settings import TOKENISERS, StreamSettings, absolute
from jobs.job_settings import LIMITS
from shoal.cli.command import command, described_options, option, typed_options
from shoal.cli.input_options import INPUT, require_s3
from shoal.cli.output import Result, print_warning
from shoal.cli.target import Target, launch_options, local_ranks_option, where_options
from shoal.cli.training_run import backend_of, config_of, run_training
from trainer.config import TrainConfig, options_for
from trainer.embeddings.evaluation import read_pairs, read_questions
from trainer.embeddings.options import require_text_of_kind

if TYPE_CHECKING:
    from shoal.runs.sources.stream import StreamSource

_READING = "How the text is read"
_READING_OPTIONS = ("text_field", "tokeniser", "keep_case", "lemmatize", "follow", "readers", "max_malformed")
_NOTE = (
    "Files, folders or s3://... with one text per line, plain or as a JSON object. With --deployment: s3://... within "
    "the topology's inputs."
)


@command(
    help="Learn word embeddings by data-parallel SGD from files of text or from a stream that grows. The model "
    "is skip-gram with "
    "negative sampling, or an LSTM over the characters of words. Ctrl-C stops with a checkpoint (exit status 130; "
    "SIGTERM: 143), and --resume continues. With --deployment, the GPU nodes run, and cost money, until the "
    "training has finished or is stopped.",
    epilog="""\
\b
Examples:
  shoal embed --local --input books.txt.gz --output results/words
  shoal embed --local --input 'logs/*.txt' --follow --minutes 30 \\
      --output results/words
  shoal embed --deployment embeddings-4x1gpu --mode average:20 \\
      --input s3://books/english --output results/words
""",
    notes={INPUT: _NOTE},
)
@where_options
@launch_options
@local_ranks_option
@option("--input", group=INPUT, multiple=True, type=click.Path(), metavar="PATH_OR_S3...", help="text to learn from")
@option(
    "--data",
    group=INPUT,
    metavar="DIR",
    help="with --local, instead of --input: the folder stream/ of an earlier run, which contains the text that "
    "the run read",
)
@option(
    "--text-field",
    group=_READING,
    multiple=True,
    metavar="FIELD...",
    advanced=True,
    help="name of the text field, if lines are JSON objects; several fields are joined (default: a known name, "
    "such as reviewText)",
)
@option(
    "--tokeniser",
    "--tokenizer",
    group=_READING,
    type=click.Choice(TOKENISERS),
    default="punctuation",
    advanced=True,
    help="how to split a line into words. punctuation: at spaces and around punctuation; treebank: as in the "
    "Penn Treebank (ten times slower); spaces: only at spaces; letters: each sequence of letters is a word (default: "
    "punctuation)",
)
@option("--keep-case", group=_READING, is_flag=True, advanced=True, help="do not convert words to lower case")
@option(
    "--lemmatize",
    group=_READING,
    is_flag=True,
    advanced=True,
    help="replace each word by its base form, for example went by go",
)
@option(
    "--follow",
    group=_READING,
    is_flag=True,
    help="keep reading new files and lines as the input grows, until --words or --minutes is reached or the run "
    "is stopped",
)
@option(
    "--readers",
    group=_READING,
    type=int,
    metavar="N",
    advanced=True,
    help="number of processes that read the text (default: 1; on a deployment, one on each reader node)",
)
@described_options(LIMITS[:1], group=_READING)
@described_options(options_for("words"), but=("data",))
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    target: Target | None,
    launch: dict[str, Any],
    nodes: int | None,
    **options: Any,
) -> Result:
    source = _source(typed_options(ctx), options, local=target is None)
    require_s3(*source.settings.sources, *options["similarity"], *options["analogy"])
    config = config_of(ctx, {} if options.get("preset") else {"model": "skipgram"}, endless=source.endless)
    _check_before_reading(config, endless=source.endless)
    backend = backend_of(target, nodes, managed=launch.pop("managed", False))
    if options["input"]:
        for note in check_sources(source.settings.sources):
            print_warning(note)
        source = source.of_text(text_fields(source.settings.sources, options["text_field"]))
    return run_training(ctx, source, config, backend, launch)


def _source(typed: dict[str, Any], options: dict[str, Any], *, local: bool) -> "StreamSource":
    from shoal.runs.sources.stream import StreamSource

    data: str | None = options["data"]
    if options["input"] and data is not None:
        raise UsageError("--input and --data exclude each other; give one of them")
    if data is not None and not local:
        raise UsageError(
            "--data names a folder on this machine, and requires --local; on a deployment, give --input s3://..."
        )
    if data is not None:
        if needless := [name for name in typed if name in _READING_OPTIONS]:
            raise UsageError(f"{flag(needless[0])} requires --input, because the text in --data was already read")
        return StreamSource.of_folder(Path(data))
    if not options["input"]:
        raise UsageError(
            "no text is given; add --input FILE_OR_S3..., or --data DIR with the folder stream/ of an earlier run"
            if local
            else "no text is given; add --input s3://..."
        )
    return StreamSource(_stream_settings(options), readers=options["readers"])


def _stream_settings(options: dict[str, Any]) -> StreamSettings:
    try:
        return StreamSettings(
            sources=tuple(map(absolute, options["input"])),
            readers=1 if options["readers"] is None else options["readers"],
            tokeniser=options["tokeniser"],
            lowercase=not options["keep_case"],
            lemmatize=options["lemmatize"],
            follow=options["follow"],
            max_malformed=options["max_malformed"],
        )
    except DataError as error:
        raise UsageError(str(error)) from error


def _check_before_reading(config: TrainConfig, *, endless: bool) -> None:
    """Check options and evaluation sets before the text is read, because reading can take hours.

    The ranks would find these errors only after reading. Raises UsageError for options that do not fit the text, and
    DataError for malformed evaluation sets.
    """
    try:
        require_text_of_kind(config.options, endless=endless)
    except TrainingError as error:
        raise UsageError(str(error)) from error
    for address in config.options.similarity:
        read_pairs(address)
    for address in config.options.analogy:
        read_questions(address)
