"""`shoal train` for models of words: text to vectors of its words."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import typed_options
from bootstrap.cli.config_options import given_words
from bootstrap.cli.input_options import require_s3
from bootstrap.cli.output import show, summary
from bootstrap.cli.output_folder import sole_writer
from bootstrap.cli.target import Target
from bootstrap.cli.training_config import config_of
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
from bootstrap.cli.word_options import refuse_text_options, stream_settings
from bootstrap.errors import UsageError
from bootstrap.interrupt import status_of
from bootstrap.progress import Bars
from corpus.stream.progress import read_status
from corpus.stream.settings import StreamSettings, read_settings
from trainer.config import TrainConfig
from trainer.embeddings.analogy import read_questions
from trainer.embeddings.similarity import read_pairs
from trainer.errors import TrainingError
from trainer.options.embedding_options import require_text_of_kind
from trainer.output.files import MODEL, finished_model

if TYPE_CHECKING:
    from bootstrap.aws.deployment import Deployment

_STOPPED = "with a checkpoint; to continue, type the same command with --resume"


def train_words(
    ctx: click.Context,
    target: Target | None,
    nodes: int | None,
    data: str | None,
    options: dict[str, Any],
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Train a model of words, on this machine or on a deployment."""
    output: Path = options["output"]
    if target is None:
        result = _train_here(ctx, nodes, data, options, dry_run=dry_run, as_json=as_json)
    else:
        result = _train_on_deployment(ctx, target, nodes, data, options, dry_run=dry_run, as_json=as_json)
    if result is None:
        return 0
    summary(result, word_rows(result, output), as_json=as_json)
    if result["stopped"]:
        return status_of(result.get("stopped_by", "SIGINT"))
    return 1 if result.get("refused") else 0


def _train_here(
    ctx: click.Context,
    nodes: int | None,
    data: str | None,
    options: dict[str, Any],
    *,
    dry_run: bool,
    as_json: bool,
) -> dict[str, Any] | None:
    """The summary; None where it was only shown what would be read."""
    from bootstrap.training.local import finished_before, train_locally
    from bootstrap.training.word_stream import FOLDER, forget, readers_of

    if options["input"] and data is not None:
        raise UsageError("--input is text to read, and --data a folder with what was read before; give one of them")
    if not options["input"] and data is None:
        raise UsageError(
            f"--model {options['model']} needs --input FILE_OR_S3..., text to learn from, or --data DIR, a folder in "
            "which an earlier run has left what it read (its output's stream/)"
        )
    refuse_text_options(typed_options(ctx), has_stream=data is not None)
    stream = Path(data) if data is not None else options["output"] / FOLDER
    settings = stream_settings(options, readers=1) if data is None else read_settings(stream)
    require_s3(*settings.sources, *options["similarity"], *options["analogy"])
    config = config_of(ctx, stream, endless=settings.endless)
    _check_before_reading(config, endless=settings.endless)
    if dry_run:
        _preview(settings, None, as_json=as_json)
        return None
    with sole_writer(config.output), Bars(unit="row") as bars:
        result = finished_before(config)
        if result is None:
            if data is None and not config.resume:
                forget(stream)
            with readers_of(stream, settings, bars) as readers:
                read = partial(read_status, stream) if settings.endless else None
                result = train_locally(
                    config, ranks=nodes or 1, bars=bars, look=readers.look, read=read, given=given_words(ctx)
                )
    return result


def _train_on_deployment(
    ctx: click.Context,
    target: Target,
    nodes: int | None,
    data: str | None,
    options: dict[str, Any],
    *,
    dry_run: bool,
    as_json: bool,
) -> dict[str, Any] | None:
    """The same on the nodes of a deployment."""
    if nodes is not None:
        raise UsageError("--nodes goes with --local; a deployment uses all nodes of its topology")
    if data is not None:
        raise UsageError("--data is a folder of this machine, and goes with --local; give --input s3://...")
    if not options["input"]:
        raise UsageError(f"--model {options['model']} needs --input s3://..., text to learn from")
    from bootstrap.aws.deployment import find_deployment
    from bootstrap.training.node_stream import require_readable
    from bootstrap.training.readers import count_readers
    from bootstrap.training.remote import train_on_deployment

    refuse_text_options(typed_options(ctx), has_stream=False)
    require_s3(*options["input"], *options["similarity"], *options["analogy"])
    deployment = find_deployment(target.name, target.account)
    settings = stream_settings(options, readers=max(1, count_readers(deployment)))
    config = config_of(ctx, Path("stream"), endless=settings.endless)
    _check_before_reading(config, endless=settings.endless)
    if dry_run:
        require_readable(deployment, settings)
        _preview(settings, deployment, as_json=as_json)
        return None
    with sole_writer(config.output), Bars(unit="row") as bars:
        return train_on_deployment(deployment, config, dataset=settings, output=config.output, bars=bars)


def _preview(settings: StreamSettings, deployment: "Deployment | None", *, as_json: bool) -> None:
    from bootstrap.cli import words_preview

    found = words_preview.content(settings, deployment)
    show(found, words_preview.text(found), as_json=as_json)


def _check_before_reading(config: TrainConfig, *, endless: bool) -> None:
    """Raise UsageError for options that the text has no use for, and DataError for sets of words of another format:
    reading may take hours, and the ranks would find that out after it."""
    try:
        require_text_of_kind(config, endless=endless)
    except TrainingError as error:
        raise UsageError(str(error)) from error
    for address in config.similarity:
        read_pairs(address)
    for address in config.analogy:
        read_questions(address)


def word_rows(result: dict[str, Any], output: Path) -> list[tuple[str, str]]:
    """The summary of a model of words for a person."""
    model = ("model", str(finished_model(output) or output / MODEL))
    if result.get("finished_before"):
        return [model, ("finished", "before this command; to train anew, type --force instead of --resume")]
    a_row = result["words_a_row"]
    learnt = result["rows_seen"] * a_row if result["stopped"] else result.get("words_seen", result["rows_seen"] * a_row)
    words = learnt, learnt / result["rows_seen"] * result["samples_per_second"] if result["rows_seen"] else 0.0
    judged = [
        (name.replace("_", " "), "too few known words" if value is None else f"{value:.3f}")
        for name, value in result.items()
        if name.startswith(("similarity", "analogy", "pip"))
    ]
    stale = result.get("staleness")
    return [
        model,
        ("words", f"{words[0]:,.0f} in {result['seconds']:.1f} s, {words[1]:,.0f} a second"),
        ("vocabulary", f"{result['vocabulary']:,} words"),
        ("rows of each rank", rows_of_ranks(result)),
        *node_rows(result),
        *_read_rows(result),
        *time_rows(result),
        *predicted_rows(result),
        *cost_rows(result),
        *speed_rows(result),
        *profile_rows(result),
        *([("staleness", f"{stale['mean']:.1f} steps on average, {stale['most']} at most")] if stale else []),
        *([] if result["stopped"] else [("loss of a pair", f"{result['loss']:.3f}")]),
        *judged,
        *([("stopped", _STOPPED)] if result["stopped"] else []),
        *refused_rows(result),
    ]


def _read_rows(result: dict[str, Any]) -> list[tuple[str, str]]:
    """What the readers of a deployment have done."""
    if "read" not in result:
        return []
    from bootstrap.cli.words_preview import describe_reading
    from corpus.stream.progress import Status

    return [("text", describe_reading(Status(**result["read"])))]
