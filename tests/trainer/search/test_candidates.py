"""Candidates of a search: one change after the other of the best settings so far, without changing given options."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.errors import TrainingError
from trainer.command_line import from_option_values, option_values
from trainer.config import TrainConfig, configured, default_model, models_by_option
from trainer.registry import AUTO, CLASSIFIERS, MODELS, SEARCHED
from trainer.search.candidates import candidate_config, next_candidate, resumed_candidate_config
from trainer.search.trials import CAUTIOUS, Trial
from trainer.task import BlockScore, DatasetStatistics

TWO = DatasetStatistics(rows=50_000, rated=True, words=200.0)
PLACES = {"data": Path("d"), "output": Path("o")}
Worth = Callable[[Mapping[str, Any]], float]


def trial(settings: Mapping[str, Any], worth: float) -> Trial:
    return Trial(settings=settings, folds=[[BlockScore(worth, worth, -worth, 0.0)] * 4], seconds=1.0)


def searched(statistics: DatasetStatistics, worth: Worth, *fixed: str) -> list[Mapping[str, Any]]:
    """Return the settings of all trials of a search in which `worth` gives the scores."""
    trials: list[Trial] = []
    while settings := next_candidate(trials, statistics, 6, fixed):
        trials.append(trial(settings, worth(settings)))
    return [each.settings for each in trials]


def test_the_best_guess_is_first_and_each_change_is_tried_once():
    found = searched(TWO, lambda _: 0.5)
    assert found[0] == {"model": "linear"}
    others = CLASSIFIERS[1:]
    assert len(found) == len({str(sorted(each.items())) for each in found}) == 4 + len(others)
    assert tuple(each["model"] for each in found[-len(others) :]) == others
    assert found[1] == {"model": "linear", "loss": "cross-entropy"}


def test_a_better_change_is_kept_and_changed_further():
    found = searched(TWO, lambda settings: 0.5 + (settings["model"] == "fasttext") + (settings.get("ngrams") == 3))
    first = found.index({"model": "fasttext"})
    assert found[first + 1] == {"model": "fasttext", "loss": "bce"}
    assert {"model": "fasttext", "ngrams": 3, "char_ngrams": "3-6"} in found
    assert all(each["model"] == "fasttext" for each in found[first:])


def test_epochs_are_doubled_while_that_helps():
    def worth(settings):
        return float(min(settings.get("epochs", 6), 24)) if settings["model"] == "lstm" else 0.0

    epochs = [each["epochs"] for each in searched(TWO, worth) if "epochs" in each and len(each) == 2]
    assert epochs[:3] == [12, 24, 48]


def test_the_lstm_is_tried_early_only_on_short_texts_and_a_rating_loss_if_there_are_ratings():
    models = [each["model"] for each in searched(TWO._replace(words=9.0), lambda _: 0.5)]
    assert models.index("lstm") < 5
    assert models.count("lstm") == 1
    assert not any("loss" in each for each in searched(TWO._replace(rated=False), lambda _: 0.5))


@pytest.mark.parametrize(("rows", "fixed", "tried"), [(1999, (), True), (2000, (), False), (9, ("optimiser",), False)])
def test_the_cautious_model_is_tried_on_few_rows(rows, fixed, tried):
    assert (CAUTIOUS in searched(TWO._replace(rows=rows), lambda _: 0.5, *fixed)) is tried


def test_a_given_optimiser_excludes_models_that_require_another(monkeypatch):
    models = [each["model"] for each in searched(TWO, lambda _: 0.5, "optimiser")]
    assert (models[0], "linear" in models, models.count("lstm")) == ("fasttext", False, 1)
    monkeypatch.setitem(MODELS, "fasttext", replace(MODELS["fasttext"], optimisers=("adagrad",)))
    models = [each["model"] for each in searched(TWO._replace(words=9.0), lambda _: 0.5, "optimiser")]
    assert {*models} == {"lstm"}  # it is slow, but no other model is left


def test_given_options_are_not_changed():
    found = searched(TWO, lambda _: 0.5, "epochs", "learning_rate")
    assert not any({"epochs", "learning_rate"} & each.keys() for each in found)
    config = configured({**PLACES, "model": AUTO, "epochs": 3, "word_dropout": 0.1, "seed": 7})
    assert config.fixed == ("epochs",)
    lstm, fasttext = (candidate_config(config, {"model": model, "ngrams": 3}) for model in ("lstm", "fasttext"))
    assert (lstm.epochs, lstm.word_dropout, lstm.seed, lstm.ngrams, lstm.fixed) == (3, 0.1, 7, TrainConfig.ngrams, ())
    assert (fasttext.epochs, fasttext.optimiser, fasttext.ngrams) == (3, "adagrad", 3)


OF_CANDIDATES = {
    **dict.fromkeys(("embedding", "vocabulary", "hidden", "buckets"), 7),
    **dict.fromkeys(("dropout", "embedding_dropout", "word_dropout"), 0.1),
    "layers": 3,
    "pooling": "mean",
    "ngrams": 5,
    "loss": "mse",
    "positive_weight": 2.0,
    "metric": "balanced",
}
UNSUPPORTED = {
    **dict.fromkeys(("character_embedding", "window", "negatives", "min_count", "words", "vocabulary_words"), 7),
    "char_ngrams": "3-6",
    "embeddings": "v.txt",
    "mode": "average:5",
    "subsample": 0.1,
    "similarity": ("s.txt",),
    "analogy": ("a.txt",),
    "pip": True,
}


def test_options_belong_to_their_models():
    assert {*OF_CANDIDATES, *UNSUPPORTED, "minutes"} == {*models_by_option()}


@pytest.mark.parametrize("name", OF_CANDIDATES)
def test_a_given_option_applies_to_each_candidate_that_has_it(name):
    config = configured({**PLACES, "model": AUTO, name: OF_CANDIDATES[name]})
    having = {model for model in CLASSIFIERS if model in models_by_option()[name]}
    candidates = {model: candidate_config(config, {"model": model}) for model in CLASSIFIERS}
    taken = {model for model, candidate in candidates.items() if getattr(candidate, name) == OF_CANDIDATES[name]}
    assert taken == having != set()


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_an_option_without_a_candidate_is_refused(name, messages):
    with messages.raises(TrainingError):
        configured({**PLACES, "model": AUTO, name: UNSUPPORTED[name]})


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_a_candidate_has_the_configuration_of_its_command_line(model):
    config = configured({**PLACES, "model": AUTO, "metric": "f1-macro", "minutes": 2.0})
    own = configured({**PLACES, "model": model, "epochs": 5, "metric": "f1-macro"})
    assert candidate_config(config, {"model": model, "epochs": 5}) == own


def test_searched_options_are_those_in_which_candidates_differ():
    defaults = {name for model in CLASSIFIERS for name in MODELS[model].defaults}
    tried = {name for each in searched(TWO._replace(rows=100), lambda _: 0.5) for name in each}
    assert set(SEARCHED) == (defaults | tried) - {"model", "char_ngrams"}


def test_ranks_get_the_given_options_and_no_searched_ones_and_a_resumed_run_the_settings_of_its_search():
    config = configured({**PLACES, "model": AUTO, "epochs": 3})
    words = option_values(config)
    assert set(words) & set(SEARCHED) == {"epochs"}
    assert from_option_values(words, endless=False) == config
    for settings in ({"model": "linear"}, {"model": "fasttext", "char_ngrams": "3-6", "learning_rate": 0.1}):
        chosen = candidate_config(config, settings)
        assert resumed_candidate_config(config, chosen.plain()) == chosen


@pytest.mark.parametrize("option", [("linear", "optimiser", "adam"), (AUTO, "preset", "reference")], ids="-".join)
def test_options_without_meaning_for_a_search_are_refused(option, messages):
    model, name, value = option
    with messages.raises(TrainingError):
        configured({**PLACES, "model": model, name: value})


def test_a_search_is_the_default_without_a_model_or_a_preset():
    assert default_model({"epochs": 3}) == {"model": AUTO}
    assert default_model({"preset": "reference"}) == default_model({"model": "lstm"}) == {}
    assert TrainConfig(**PLACES, model=AUTO).search_seconds == 300
