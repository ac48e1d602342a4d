"""`shoal train` for models of words: text to vectors of its words."""

from pathlib import Path
from typing import Any

import click

from bootstrap.cli.input_options import require_s3
from bootstrap.cli.output import summary
from bootstrap.cli.target import Target
from bootstrap.cli.train import config_of, profile_rows, rows_of_ranks, speed_rows, time_rows
from bootstrap.cli.word_options import stream_settings
from bootstrap.errors import UsageError
from bootstrap.interrupt import status_of
from bootstrap.progress import Bars
from bootstrap.training.local import finished_before, train_locally
from bootstrap.training.word_stream import FOLDER, forget, readers_of
from corpus.stream.settings import read_settings
from trainer.output.files import MODEL, finished_model

_STOPPED = "with a checkpoint; to continue, type the same command with --resume"


def train_words(
    ctx: click.Context,
    target: Target | None,
    nodes: int | None,
    data: str | None,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> int:
    """Train a model of words on this machine."""
    if target is not None:
        raise UsageError(f"--model {options['model']} learns on this machine alone for now; give --local")
    if nodes is not None and nodes < 1:
        raise UsageError(f"--nodes is {nodes}, but must be at least 1")
    if bool(options["input"]) == (data is not None):
        raise UsageError(
            f"--model {options['model']} needs --input FILE_OR_S3..., text to learn from, or --data DIR, a folder in "
            "which an earlier run has left what it read (its output's stream/)"
        )
    output: Path = options["output"]
    stream = Path(data) if data is not None else output / FOLDER
    settings = stream_settings(options) if data is None else read_settings(stream)
    require_s3(*settings.sources)
    config = config_of(ctx, stream)
    result = finished_before(config)
    if result is None:
        with Bars(unit="row") as bars:
            if data is None and not config.resume:
                forget(stream)
            with readers_of(stream, settings, bars) as readers:
                result = train_locally(config, ranks=nodes or 1, bars=bars, look=readers.look)
    summary(result, word_rows(result, output), as_json=as_json)
    return status_of(result.get("stopped_by", "SIGINT")) if result["stopped"] else 0


def word_rows(result: dict[str, Any], output: Path) -> list[tuple[str, str]]:
    """The summary of a model of words for a person."""
    model = ("model", str(finished_model(output) or output / MODEL))
    if result.get("finished_before"):
        return [model, ("finished", "before this command; to train anew, type --force instead of --resume")]
    a_row = result["words_a_row"]
    words = result["rows_seen"] * a_row, result["samples_per_second"] * a_row
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
        *time_rows(result),
        *speed_rows(result),
        *profile_rows(result),
        *([("staleness", f"{stale['mean']:.1f} steps on average, {stale['most']} at most")] if stale else []),
        *([] if result["stopped"] else [("loss of a pair", f"{result['loss']:.3f}")]),
        *judged,
        *(
            [("stopped", "with a checkpoint; to continue, type the same command with --resume")]
            if result["stopped"]
            else []
        ),
    ]
