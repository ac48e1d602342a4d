"""`shoal pretrain`: text without labels to a language model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import command, described_options, option, typed_options
from bootstrap.cli.input_options import INPUT, READING, require_s3
from bootstrap.cli.output import json_option, percent, show, summary
from bootstrap.cli.target import Target, hosts_option, launch_options, local_ranks_option, where_options
from bootstrap.cli.training_rows import (
    cost_rows,
    node_rows,
    predicted_rows,
    profile_rows,
    refused_rows,
    rows_of_ranks,
    speed_rows,
    time_rows,
)
from bootstrap.cli.training_run import config_of, detached_rows, exit_status, place_of, run_training
from common.errors import DataError, UsageError
from corpus.dataset_settings import RULES_OF_JOBS, WORD_RULES, Settings
from jobs.choose import LIMITS
from jobs.job_settings import TEST_SHARE
from trainer.config import options_for
from trainer.output.run_files import MODEL, finished_model

if TYPE_CHECKING:
    from bootstrap.training.sources.source import Source

_INPUT_NOTE = (
    "Files, folders, patterns in quotes or s3://...: reviews, whose ratings or labels are not looked at, or plain "
    "text, a text a line. With --deployment s3://... within the topology's inputs."
)


@command(
    short_help="learn a language model from text without labels",
    help="Learn a language model, an AWD-LSTM that predicts the next word or byte, by data-parallel SGD: rows of a "
    "global batch are contiguous streams of text, whose states are carried from step to step, also when the balancer "
    "moves them to another rank. `shoal train --from` makes a classifier of it. Of --data the test rows are only "
    "predicted, so a classifier may be tested on them. Ctrl-C stops with a checkpoint, and exit status 130 (SIGTERM: "
    "143); --resume continues.",
    epilog="""\
\b
Examples:
  shoal pretrain --local --input reviews/*.json.gz --output results/language
  shoal pretrain --local --data results/data/dataset.h5 --preset small \\
      --output results/language
  shoal pretrain --local --input books.txt --unit bytes --output results/bytes
  shoal pretrain --deployment starter --preset medium --direction both \\
      --input s3://reviews/all --output results/language
  shoal train --local --data results/data/dataset.h5 --from results/language \\
      --output results/model
""",
    notes={INPUT: _INPUT_NOTE},
)
@where_options
@hosts_option
@launch_options
@local_ranks_option
@option(
    "--rates",
    group="Where",
    several=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    advanced=True,
    help="predict how long it takes by outputs of `shoal pretrain` with the same model (default with --deployment: by "
    "the catalogue)",
)
@option("--input", group=INPUT, several=True, type=click.Path(), metavar="PATH_OR_S3...", help="the text")
@option(
    "--data",
    group=INPUT,
    metavar="DATASET",
    help="instead: a dataset made by `shoal preprocess`, a file or, with --deployment, also s3://...",
)
@option("--text-field", group=READING, several=True, metavar="FIELD...", help="field of the text, of --input")
@option(
    "--exclude",
    group=INPUT,
    several=True,
    metavar="PATTERN...",
    advanced=True,
    help="what to leave out of folders and patterns: names ('*.png'), or ends of paths ('old/*.json')",
)
@option(
    "--unit",
    group=READING,
    type=click.Choice(WORD_RULES[1:]),
    help="of --input: what is predicted, words with digits and punctuation (tokens, the default), or bytes, which need "
    "no vocabulary",
)
@described_options((TEST_SHARE, *LIMITS), group=READING)
@option("--dry-run", group=READING, is_flag=True, help="show how the input is read; read no more than its beginnings")
@described_options(options_for("language"), but=("data",))
@json_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    *,
    target: Target | Path | None,
    wishes: dict[str, Any],
    nodes: int | None,
    rates: tuple[Path, ...],
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Run `shoal pretrain`."""
    source = _source(typed_options(ctx), options, local=target is None)
    if dry_run and not options["input"]:
        raise UsageError("--dry-run goes with --input; shoal dataset info shows what is in a dataset")
    config = config_of(ctx, {"model": "awd-lstm"})
    if dry_run:
        from bootstrap.cli.preview import content, text
        from bootstrap.preprocessing.preview import preview_texts
        from bootstrap.training.sources.texts import TextsSource, settings_of_texts

        assert isinstance(source, TextsSource)
        preview = preview_texts(source.inputs, settings_of_texts(source.settings, source.words), str(config.output))
        show(content(preview), text(preview), as_json=as_json)
        return 0
    place = place_of(target, nodes, wishes)
    result = run_training(ctx, source, config, place, rates)
    summary(result, rows(result, config.output), as_json=as_json)
    return exit_status(result)


def _source(typed: dict[str, Any], options: dict[str, Any], *, local: bool) -> "Source":
    """The text to learn from. Raises UsageError for options that do not go together."""
    data: str | None = options["data"]
    if not options["input"]:
        if needless := [name for name in ("text_field", "exclude", "unit", "test_share") if name in typed]:
            raise UsageError(f"--{needless[0].replace('_', '-')} goes with --input; a dataset was read already")
        if local and data is None:
            raise UsageError("--local needs --input FILE...: texts, or --data FILE, a dataset of `shoal preprocess`")
        require_s3(data)
        from bootstrap.training.sources.dataset import DatasetSource

        return DatasetSource(data)
    if data is not None:
        raise UsageError("--data is a dataset, and --input texts to make one of; give one of them")
    from bootstrap.training.sources.texts import TextsSource
    from corpus.reading.sources import Inputs, ReadingOptions

    try:
        inputs = Inputs(
            unlabelled=options["input"], exclude=options["exclude"], options=ReadingOptions(text=options["text_field"])
        )
        settings = Settings(test_share=options["test_share"])
    except DataError as error:
        raise UsageError(str(error)) from error
    require_s3(*inputs.addresses)
    return TextsSource(
        inputs=inputs,
        settings=settings,
        max_malformed=options["max_malformed"],
        allow_damaged=options["allow_damaged"],
        words=options["unit"] or RULES_OF_JOBS[1],
    )


def rows(result: dict[str, Any], output: Path) -> list[tuple[str, str]]:
    """The summary for a person."""
    if result.get("detached"):
        return detached_rows(result)
    model = ("model", str(finished_model(output) or output / MODEL))
    if result.get("finished_before"):
        return [model, ("finished", "before this command; to train anew, type --force instead of --resume")]
    tokens, speed = result["rows_seen"] * result["tokens_a_row"], result["samples_per_second"] * result["tokens_a_row"]
    found = [
        ("tokens", f"{tokens:,.0f} in {result['seconds']:.1f} s, {speed:,.0f} a second"),
        ("rows of each rank", rows_of_ranks(result)),
        *node_rows(result),
        *time_rows(result),
        *predicted_rows(result),
        *cost_rows(result),
        *speed_rows(result),
    ]
    if result["stopped"]:
        stopped = ("stopped", "with a checkpoint; to continue, type the same command with --resume")
        return [*found, *profile_rows(result), stopped, *refused_rows(result)]
    return [
        model,
        *found,
        ("perplexity", f"{result['perplexity']:,.1f} of a vocabulary of {result['vocabulary']:,}, on held-out texts"),
        ("bits per byte", f"{result['bits_per_byte']:.3f}"),
        ("unknown words", f"{percent(result['unknown'])}, as one"),
        *profile_rows(result),
        ("to classify", f"shoal train --from {output} ..."),
        *refused_rows(result),
    ]
