"""What pretraining a language model takes (`shoal plan --tokens`): its options, and the model and text they name."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bootstrap.cli.command import Callback, Converted, described_options, option
from bootstrap.cli.figures import read_size
from common.errors import TrainingError, UsageError
from common.options import flag
from corpus.dataset_settings import RULES_OF_JOBS, WORD_RULES
from trainer.config import configured, options_for
from trainer.registry import LANGUAGE_MODELS, MODELS

if TYPE_CHECKING:
    from experiments.forecast.language import LanguageModel
    from experiments.forecast.rates import Rates

_GROUP = "Language model"
_MODEL = ("preset", "hidden", "layers", "bptt", "samples", "gradient_bits")
SHARED = ("embedding", "vocabulary")
"""Options that are also those of word embeddings."""
_OTHERS = ("rows", "raw_bytes", "like", "words", "rank_batch", "mode", "ranks")


def language_options(function: Callback) -> Callback:
    """Declare the options."""
    described_options([each for each in options_for("language") if each.name in _MODEL], group=_GROUP)(function)
    for each in (
        option(
            "--unit",
            group=_GROUP,
            type=click.Choice(WORD_RULES[1:]),
            help="with --tokens: what is predicted, words (tokens, the default) or bytes",
        ),
        option(
            "--text",
            group=_GROUP,
            type=click.Path(path_type=Path),
            metavar="DATASET",
            help="in place of --tokens: a dataset of `shoal preprocess`, whose training texts are counted",
        ),
        option(
            "--tokens",
            group=_GROUP,
            type=Converted(read_size),
            metavar="N",
            help="words or bytes of a text, such as 250M or 38G, to pretrain a language model on, in place of --rows",
        ),
    ):
        each(function)
    return function


@dataclass(frozen=True, kw_only=True)
class LanguageWork:
    """What is to be predicted."""

    model: "LanguageModel"
    tokens: int
    epochs: int
    global_batch: int


def is_asked(asked: dict[str, Any]) -> bool:
    """Whether a language model is to be pretrained."""
    return asked["tokens"] is not None or asked["text"] is not None


def check_options(asked: dict[str, Any], typed: dict[str, Any]) -> None:
    """Raise UsageError for options that do not go together."""
    if not is_asked(asked):
        if needless := [name for name in (*_MODEL, "unit") if name in typed]:
            raise UsageError(f"{flag(needless[0])} goes with --tokens or --text, to pretrain a language model on")
        return
    if asked["tokens"] is not None and asked["text"] is not None:
        raise UsageError("--text is a dataset whose tokens are counted; give it, or --tokens")
    if both := [name for name in _OTHERS if name in typed]:
        raise UsageError(f"{flag(both[0])} does not go with --tokens and --text, a language model's; give one of them")
    if asked["text"] is not None and asked["unit"]:
        raise UsageError("--unit goes with --tokens; a dataset was read already")
    if asked["rates"] and (measured := [name for name in (*_MODEL, *SHARED) if name in typed]):
        raise UsageError(f"{flag(measured[0])} is that of the runs of --rates; leave it out")


def read_language_work(asked: dict[str, Any], typed: dict[str, Any], rates: "Rates | None") -> LanguageWork:
    """What is to be predicted, of the model of `rates` where there are some. Raises UsageError for values that cannot
    be, and for rates of another kind of model, and DataError for a dataset that cannot be used."""
    from experiments.forecast.language import LanguageModel, language_epochs

    given = {name: typed[name] for name in (*_MODEL, *SHARED, "epochs", "global_batch") if name in typed}
    if rates is not None:
        if rates.model.get("model") not in LANGUAGE_MODELS:
            raise UsageError("--rates has runs of another kind; give outputs of `shoal pretrain`")
        given |= rates.model
    try:
        config = configured({"model": LANGUAGE_MODELS[0], **given, "data": "none", "output": "none"})
    except TrainingError as error:
        raise UsageError(str(error)) from error
    if asked["text"] is None:
        model, tokens = LanguageModel.of(config, asked["unit"] or RULES_OF_JOBS[1]), asked["tokens"]
    else:
        from bootstrap.training.sources.dataset import language_model, opened_dataset, tokens_to_learn

        with opened_dataset(str(asked["text"])) as dataset:
            model, tokens = language_model(dataset, config), tokens_to_learn(dataset, config)
    return LanguageWork(
        model=model,
        tokens=max(1, round(tokens)),
        epochs=language_epochs(config),
        global_batch=config.requested_batch(1) or MODELS[config.model].rows_of_a_step[not asked["local"]],
    )
