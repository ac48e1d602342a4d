"""Which settings a search tries, and in which order: first the best guess, then one change after the other of the best
so far, as fastText's autotune and other coordinate searches do.

Everything here follows from the trials alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainer.config import TrainConfig
from trainer.options.presets import MODEL_DEFAULTS, SEARCHED
from trainer.registry import MODELS
from trainer.search.trials import CAUTIOUS, Trial, best_of
from trainer.task import Traits

Settings = Mapping[str, Any]

START: Settings = {"model": "linear"}
"""The best guess: the most accurate model, and a quick one (benchmarks/results/fasttext.md)."""
_OTHERS = ("lstm", "fasttext")
_FEW_ROWS = 2000
_SHORT = 100.0
"""Words of short texts: those of which an LSTM learns quickly."""
_OF_FASTTEXT: Sequence[Settings] = (
    {"ngrams": 3},
    {"char_ngrams": "3-6"},
    {"embedding": 50, "dropout": 0.8},
    {"ngrams": 1},
)


def configured_candidate(config: TrainConfig, settings: Settings) -> TrainConfig:
    """The configuration of a candidate in a run of `config`, whose fixed options it keeps."""
    kept = {name: getattr(config, name) for name in config.fixed}
    values = {**MODEL_DEFAULTS[settings["model"]], **settings, **kept}
    if MODELS[settings["model"]].reads_whole_texts:
        values["word_dropout"] = 0.0
    return replace(config, **values, fixed=(), minutes=None)


def resumed_candidate(config: TrainConfig, made: Mapping[str, Any]) -> TrainConfig:
    """The configuration of a run of `config` that is resumed, of the settings that its search chose: those that it was
    `made` with (output/checkpoint.py), where none are given."""
    chosen = {name: made[name] for name in ("model", "char_ngrams", *SEARCHED) if name not in config.fixed}
    return replace(config, **chosen, fixed=(), minutes=None)


def next_candidate(trials: Sequence[Trial], traits: Traits, epochs: int, fixed: Sequence[str]) -> Settings | None:
    """The settings to try after these trials; None where nothing is left that may be better. `epochs`: those that a
    model has by default. Options that are `fixed` do not change."""
    if not trials:  # the linear model learns by no other optimiser than its own
        return {"model": "fasttext"} if "optimiser" in fixed else START
    best, tried = best_of(trials).settings, [trial.settings for trial in trials]
    for candidate in _neighbours(best, traits, epochs):
        changed = {name for name in {*candidate, *best} if candidate.get(name) != best.get(name)}
        if candidate not in tried and changed.isdisjoint(fixed):
            return candidate
    return None


def _neighbours(best: Settings, traits: Traits, epochs: int) -> Iterator[Settings]:
    """The best settings so far with one change, those that help most often first."""
    others = [{"model": model} for model in _OTHERS if best["model"] not in ("lstm", model)]
    first = 1 if traits.words < _SHORT else 0
    if traits.rated:
        by_default = MODEL_DEFAULTS[best["model"]].get("loss", TrainConfig.loss)
        yield {**best, "loss": "cross-entropy" if by_default == "bce" else "bce"}
    yield from others[:first]
    changes = _OF_FASTTEXT if best["model"] == "fasttext" else ()
    yield from ({**best, **change} for change in (*changes, *_of_the_steps(best, epochs)))
    yield from others
    if traits.rows < _FEW_ROWS and best["model"] == CAUTIOUS["model"]:
        yield CAUTIOUS


def _of_the_steps(best: Settings, epochs: int) -> Iterator[Settings]:
    epochs = best.get("epochs", epochs)
    rate = best.get("learning_rate", MODEL_DEFAULTS[best["model"]].get("learning_rate", TrainConfig.learning_rate))
    if "epochs" not in MODEL_DEFAULTS[best["model"]]:
        yield {"epochs": 2 * epochs}
        yield {"epochs": max(1, epochs // 2)}
    yield {"learning_rate": rate / 2}
    yield {"learning_rate": 2 * rate}
