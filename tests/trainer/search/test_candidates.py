"""A search tries one change after the other of the best settings so far, and changes nothing that was given."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.errors import TrainingError
from trainer.command_line import as_words, from_words
from trainer.config import TrainConfig, configured, default_model, options_of_some
from trainer.registry import AUTO, CLASSIFIERS, MODELS, SEARCHED
from trainer.search.candidates import configured_candidate, next_candidate, resumed_candidate
from trainer.search.trials import CAUTIOUS, Trial
from trainer.task import BlockScore, Traits

TWO = Traits(rows=50_000, rated=True, words=200.0)
PLACES = {"data": Path("d"), "output": Path("o")}
Worth = Callable[[Mapping[str, Any]], float]


def trial(settings: Mapping[str, Any], worth: float) -> Trial:
    return Trial(settings=settings, folds=[[BlockScore(worth, worth, -worth, 0.0)] * 4], seconds=1.0)


def searched(traits: Traits, worth: Worth, *fixed: str) -> list[Mapping[str, Any]]:
    """The settings of all trials of a search in which models are worth what `worth` says."""
    trials: list[Trial] = []
    while settings := next_candidate(trials, traits, 6, fixed):
        trials.append(trial(settings, worth(settings)))
    return [each.settings for each in trials]


def test_the_best_guess_is_first_and_each_change_is_tried_once_where_none_is_better() -> None:
    found = searched(TWO, lambda _: 0.5)
    assert found[0] == {"model": "linear"}
    others = CLASSIFIERS[1:]
    assert len(found) == len({str(sorted(each.items())) for each in found}) == 4 + len(others)
    assert tuple(each["model"] for each in found[-len(others) :]) == others
    assert found[1] == {"model": "linear", "loss": "cross-entropy"}


def test_a_change_that_is_better_stays_and_what_follows_changes_it_further() -> None:
    found = searched(TWO, lambda settings: 0.5 + (settings["model"] == "fasttext") + (settings.get("ngrams") == 3))
    first = found.index({"model": "fasttext"})
    assert found[first + 1] == {"model": "fasttext", "loss": "bce"}
    assert {"model": "fasttext", "ngrams": 3, "char_ngrams": "3-6"} in found
    assert all(each["model"] == "fasttext" for each in found[first:])


def test_epochs_are_doubled_as_long_as_that_helps() -> None:
    found = searched(
        TWO, lambda settings: float(min(settings.get("epochs", 6), 24)) if settings["model"] == "lstm" else 0.0
    )
    assert [each["epochs"] for each in found if "epochs" in each and len(each) == 2][:3] == [12, 24, 48]


def test_the_lstm_is_tried_early_on_short_texts_alone() -> None:
    models = [each["model"] for each in searched(TWO._replace(words=9.0), lambda _: 0.5)]
    assert models.index("lstm") < 5
    assert models.count("lstm") == 1


@pytest.mark.parametrize(("rows", "fixed", "tried"), [(1999, (), True), (2000, (), False), (9, ("optimiser",), False)])
def test_the_cautious_model_is_tried_on_few_rows(rows: int, fixed: Sequence[str], tried: bool) -> None:
    assert (CAUTIOUS in searched(TWO._replace(rows=rows), lambda _: 0.5, *fixed)) is tried


def test_with_an_optimiser_that_was_given_the_linear_model_is_not_tried() -> None:
    models = [each["model"] for each in searched(TWO, lambda _: 0.5, "optimiser")]
    assert (models[0], "linear" in models, models.count("lstm")) == ("fasttext", False, 1)


def test_no_model_that_has_its_own_optimiser_is_tried_with_one_that_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "fasttext", replace(MODELS["fasttext"], optimisers=("adagrad",)))
    found = searched(TWO._replace(words=9.0), lambda _: 0.5, "optimiser")
    assert {each["model"] for each in found} == {"lstm"}  # slow, but no other is left


def test_a_loss_of_ratings_is_tried_where_there_are_some() -> None:
    assert not any("loss" in each for each in searched(TWO._replace(rated=False), lambda _: 0.5))


def test_options_that_were_given_are_not_changed() -> None:
    found = searched(TWO, lambda _: 0.5, "epochs", "learning_rate")
    assert not any({"epochs", "learning_rate"} & each.keys() for each in found)
    config = configured({**PLACES, "model": AUTO, "epochs": 3, "word_dropout": 0.1, "seed": 7})
    assert config.fixed == ("epochs",)
    lstm, fasttext = (configured_candidate(config, {"model": model, "ngrams": 3}) for model in ("lstm", "fasttext"))
    assert (lstm.epochs, lstm.word_dropout, lstm.seed, lstm.ngrams, lstm.fixed) == (3, 0.1, 7, TrainConfig.ngrams, ())
    assert (fasttext.epochs, fasttext.optimiser, fasttext.ngrams) == (3, "adagrad", 3)


OF_CANDIDATES = {
    "embedding": 7,
    "vocabulary": 7,
    "hidden": 7,
    "layers": 3,
    "pooling": "mean",
    "ngrams": 5,
    "buckets": 7,
    "dropout": 0.1,
    "embedding_dropout": 0.1,
    "word_dropout": 0.1,
    "loss": "mse",
    "positive_weight": 2.0,
    "metric": "balanced",
}
OF_OTHERS = {
    "char_ngrams": "3-6",
    "embeddings": "v.txt",
    "mode": "average:5",
    "character_embedding": 7,
    "window": 7,
    "negatives": 7,
    "subsample": 0.1,
    "min_count": 7,
    "words": 7,
    "vocabulary_words": 7,
    "similarity": ("s.txt",),
    "analogy": ("a.txt",),
    "pip": True,
}


def test_options_of_some_models_are_these() -> None:
    assert {*OF_CANDIDATES, *OF_OTHERS, "minutes"} == {*options_of_some()}


@pytest.mark.parametrize("name", OF_CANDIDATES)
def test_an_option_of_a_search_is_that_of_each_candidate_that_has_it(name: str) -> None:
    config = configured({**PLACES, "model": AUTO, name: OF_CANDIDATES[name]})
    having = {model for model in CLASSIFIERS if model in options_of_some()[name]}
    taken = {model for model in CLASSIFIERS if _of(config, model, name) == OF_CANDIDATES[name]}
    assert taken == having != set()


def _of(config: TrainConfig, model: str, name: str) -> Any:
    return getattr(configured_candidate(config, {"model": model}), name)


@pytest.mark.parametrize("name", OF_OTHERS)
def test_an_option_that_no_candidate_of_a_search_has_is_refused(name: str) -> None:
    with pytest.raises(TrainingError, match=r"--model auto has no --[a-z-]+; leave it out"):
        configured({**PLACES, "model": AUTO, name: OF_OTHERS[name]})


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_a_candidate_has_the_configuration_of_its_options_as_they_are_typed(model: str) -> None:
    config = configured({**PLACES, "model": AUTO, "metric": "f1-macro", "minutes": 2.0})
    assert configured_candidate(config, {"model": model, "epochs": 5}) == configured(
        {**PLACES, "model": model, "epochs": 5, "metric": "f1-macro"}
    )


def test_what_is_searched_are_the_options_in_which_models_or_candidates_differ() -> None:
    defaults = {name for model in CLASSIFIERS for name in MODELS[model].defaults}
    tried = {name for each in searched(TWO._replace(rows=100), lambda _: 0.5) for name in each}
    assert set(SEARCHED) == (defaults | tried) - {"model", "char_ngrams"}


def test_ranks_are_told_what_was_given_and_nothing_else_that_is_searched() -> None:
    config = configured({**PLACES, "model": AUTO, "epochs": 3})
    words = as_words(config)
    assert set(words) & set(SEARCHED) == {"epochs"}
    assert from_words(words, endless=False) == config


def test_a_run_that_goes_on_has_the_settings_that_the_search_chose() -> None:
    config = configured({**PLACES, "model": AUTO, "epochs": 3})
    for settings in ({"model": "linear"}, {"model": "fasttext", "char_ngrams": "3-6", "learning_rate": 0.1}):
        chosen = configured_candidate(config, settings)
        assert resumed_candidate(config, chosen.plain()) == chosen


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"model": "linear", "optimiser": "adam"}, "--optimiser is adam, but --model linear learns by adagrad alone"),
        ({"model": AUTO, "preset": "reference"}, "--preset reference has a model of its own, lstm; leave out"),
    ],
)
def test_what_a_search_cannot_have_is_a_sentence(given: Mapping[str, Any], sentence: str) -> None:
    with pytest.raises(TrainingError, match=sentence):
        configured({**PLACES, **given})


def test_a_search_is_the_default_where_neither_a_model_nor_a_preset_is_given() -> None:
    assert default_model({"epochs": 3}) == {"model": AUTO}
    assert default_model({"preset": "reference"}) == default_model({"model": "lstm"}) == {}
    assert TrainConfig(**PLACES, model=AUTO).search_seconds == 300
