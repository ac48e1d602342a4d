"""Candidates of a search and their order: a first guess, and then the best settings so far with one change.

This is a coordinate search, like fastText's autotune. The next candidate depends only on the trials so far.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainer.config import TrainConfig, default_of
from trainer.registry import CLASSIFIERS, MODELS, SEARCHED, Settings
from trainer.search.trials import CAUTIOUS, Trial, best_of
from trainer.task import DatasetStatistics

_FEW_ROWS = 2000
_SHORT = 100.0
"""Texts are short if they have fewer words than this on average. A slow model learns quickly on short texts."""


def candidate_config(config: TrainConfig, settings: Settings) -> TrainConfig:
    """Return the configuration of a candidate with these settings.

    Options that are fixed in `config` keep their values.
    """
    kept = {name: getattr(config, name) for name in config.fixed}
    return config.with_model(settings["model"], {**settings, **kept, "fixed": ()})


def resumed_candidate_config(config: TrainConfig, saved: Mapping[str, Any]) -> TrainConfig:
    """Return the configuration for resuming a run with the settings that its search has chosen.

    `saved`: the configuration in the checkpoint (output/checkpoint.py). Options that the user gives again take
    precedence.
    """
    return candidate_config(config, {name: saved[name] for name in ("model", "char_ngrams", *SEARCHED)})


def next_candidate(
    trials: Sequence[Trial], statistics: DatasetStatistics, epochs: int, fixed: Sequence[str]
) -> Settings | None:
    """Return the settings to try after these trials; None if no candidate is left.

    `epochs`: the default number of epochs of a model. `fixed`: options that no candidate changes.
    """
    free = [name for name in CLASSIFIERS if not ("optimiser" in fixed and MODELS[name].optimisers)]
    if not trials:  # the first model in the registry is the most accurate (benchmarks/results/fasttext.md)
        return {"model": min(free, key=lambda name: MODELS[name].is_slow)}
    best, tried = best_of(trials).settings, [trial.settings for trial in trials]
    for candidate in _neighbours(best, statistics, epochs, free):
        changed = {name for name in {*candidate, *best} if candidate.get(name) != best.get(name)}
        if candidate not in tried and changed.isdisjoint(fixed):
            return candidate
    return None


def _neighbours(best: Settings, statistics: DatasetStatistics, epochs: int, free: Sequence[str]) -> Iterator[Settings]:
    """Yield the best settings so far with one change.

    The changes that help most often come first. `free`: the allowed models.
    """
    model = MODELS[best["model"]]
    others = [] if model.is_slow else [name for name in free if name not in (CLASSIFIERS[0], best["model"])]
    early = [name for name in others if statistics.words < _SHORT and MODELS[name].is_slow]
    if statistics.rated:
        yield {**best, "loss": "cross-entropy" if default_of(best["model"], "loss") == "bce" else "bce"}
    yield from ({"model": name} for name in early)
    yield from ({**best, **change} for change in (*model.changes, *_step_changes(best, epochs)))
    yield from ({"model": name} for name in others)
    if statistics.rows < _FEW_ROWS and best["model"] == CAUTIOUS["model"]:
        yield CAUTIOUS


def _step_changes(best: Settings, epochs: int) -> Iterator[Settings]:
    defaults = MODELS[best["model"]].defaults
    if "epochs" not in defaults:
        epochs = best.get("epochs", epochs)
        yield {"epochs": 2 * epochs}
        yield {"epochs": max(1, epochs // 2)}
    rate = best.get("learning_rate", defaults.get("learning_rate", TrainConfig.learning_rate))
    yield {"learning_rate": rate / 2}
    yield {"learning_rate": 2 * rate}
