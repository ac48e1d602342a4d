"""Options of a training run: presets, defaults, tasks of models, and refused values."""

from pathlib import Path

import pytest

from common.errors import TrainingError
from common.options import flag
from trainer.command_line import as_arguments, parse_arguments
from trainer.computing.optimiser import learning_rate
from trainer.config import configured, options_for
from trainer.registry import CLASSIFIERS, MODELS, WORD_MODELS, Model

FILES = ["--data", "d.h5", "--output", "out"]


def test_the_reference_preset_has_the_settings_of_the_reference_unless_others_are_given():
    config = parse_arguments([*FILES, "--preset", "reference"])
    own, optimisation = config.options, config.optimisation
    assert (own.layers, own.hidden, own.embedding, own.pooling) == (2, 32, 100, "last")
    assert (optimisation.optimiser, optimisation.learning_rate, optimisation.momentum) == ("sgd", 0.1, 0.9)
    assert (own.positive_weight, optimisation.epochs, own.dropout) == (0.2, 10, 0.5)
    assert (own.embedding_dropout, own.word_dropout) == (0.0, 0.0)
    assert (own.row_length, parse_arguments(FILES).options.row_length) == (100, 400)
    assert optimisation.batch_for(4) == 512
    other = parse_arguments([*FILES, "--preset", "reference", "--epochs", "1", "--global-batch", "64"])
    assert (other.optimisation.epochs, other.optimisation.batch_for(4), other.options.hidden) == (1, 64, 32)
    assert parse_arguments(as_arguments(other)).options.row_length == other.options.row_length == 100


@pytest.mark.parametrize(
    ("options", "model", "size"),
    [
        (("--preset", "sgns"), "skipgram", 100),
        (("--preset", "sgns", "--embedding", "50"), "skipgram", 50),
        (("--preset", "sgns-char"), "char-lstm", 200),
    ],
)
def test_presets_of_word_models_set_options_that_are_not_given(options, model, size):
    config = parse_arguments([*FILES, *options])
    own, optimisation = config.options, config.optimisation
    assert (config.model, own.embedding) == (model, size)
    assert (own.window, own.negatives, own.subsample, own.min_count) == (5, 10, 2e-3, 3)
    assert (optimisation.optimiser, optimisation.learning_rate, optimisation.schedule) == ("adam", 1e-4, "constant")
    assert learning_rate(optimisation, 0, 10, 1024) == learning_rate(optimisation, 9, 10, 8) == 1e-4
    if options == ("--preset", "sgns-char"):
        assert (own.character_embedding, own.hidden, own.layers) == (128, 512, 1)


WORDS = {"data": Path("d"), "output": Path("o")}


def test_python_programs_give_paths_and_lists_in_any_class():
    given = {**WORDS, "model": "skipgram", "data": "d", "cache": "c", "similarity": ["a", Path("b")], "epochs": 1}
    config = configured(given)
    assert (config.data, config.cache, config.options.similarity) == (Path("d"), Path("c"), ("a", "b"))
    assert configured({**WORDS, "model": "lstm", "embeddings": Path("v")}).options.embeddings == "v"


def test_a_run_trains_the_linear_model_unless_a_model_or_a_preset_is_given():
    assert (
        configured(WORDS)
        == configured({**WORDS, "model": "linear"})
        == parse_arguments(["--data", "d", "--output", "o"])
    )
    assert configured({**WORDS, "preset": "gluon"}).model == "fasttext"


@pytest.mark.parametrize("model", ["skipgram", "char-lstm"])
def test_defaults_on_unbounded_text_need_no_end(model):
    config = configured({**WORDS, "model": model}, endless=True).optimisation
    assert (config.schedule, config.warm_up) == ("constant", 0.0)
    assert learning_rate(config, 0, 10, 16) == learning_rate(config, 9, 10, 16)
    falls = configured({**WORDS, "model": model, "words": 1000}, endless=True).optimisation
    assert learning_rate(falls, 9, 10, 16) < learning_rate(falls, 0, 10, 16)
    given = configured({**WORDS, "model": model, "optimiser": "sgd", "learning_rate": 2.0}, endless=True).optimisation
    assert (given.optimiser, given.learning_rate) == ("sgd", 2.0)


@pytest.mark.parametrize("options", [{"schedule": "linear"}, {"warm_up": 0.1}], ids=["schedule", "warm-up"])
def test_a_decaying_schedule_on_unbounded_text_is_refused(options, messages):
    with messages.raises(TrainingError):
        configured({**WORDS, "model": "skipgram", **options}, endless=True)
    configured({**WORDS, "model": "skipgram", "words": 1000, **options}, endless=True)


@pytest.mark.parametrize(
    ("model", "option", "value"),
    [
        ("char-lstm", "mode", "average:5"),
        ("lstm", "mode", "sync"),
        ("linear", "hidden", 8),
        ("skipgram", "embeddings", "v.txt"),
        ("fasttext", "word_dropout", 0.2),
    ],
)
def test_an_option_of_other_models_is_refused_even_with_its_default(model, option, value, messages):
    with messages.raises(TrainingError) as refused:
        configured({**WORDS, "model": model, option: value})
    assert flag(option) in str(refused.value)


@pytest.mark.parametrize(
    ("preset", "model", "own"),
    [
        ("reference", "fasttext", "lstm"),
        ("sgns", "lstm", "skipgram"),
    ],
)
def test_a_preset_requires_its_model(preset, model, own, messages):
    assert configured({**WORDS, "preset": preset, "model": own}) == configured({**WORDS, "preset": preset})
    with messages.raises(TrainingError):
        configured({**WORDS, "preset": preset, "model": model})


@pytest.mark.parametrize(
    ("learns", "name", "default"),
    [("words", "hidden", 128), ("classes", "hidden", 32), ("classes", "ngrams", 3)],
)
def test_help_shows_the_default_of_the_first_model_that_has_an_option(learns, name, default):
    (shown,) = (each for each in options_for(learns) if each.name == name)
    assert shown.default == default


NUMBERS = ("--checkpoint-minutes", "--learning-rate", "--clip-norm", "--positive-weight")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(
            (f"{name} 64 --rank-batch 32 --preset reference", "contradict each other")
            for name in ("--global-batch", "--batch-size")
        ),
        *((f"{name} {value}", f"{name} is {value}") for name in NUMBERS for value in ("inf", "nan")),
    ],
)
def test_values_that_contradict_each_other_or_are_not_finite_are_wrong_use(options, words, capsys):
    with pytest.raises(SystemExit):
        parse_arguments([*FILES, *options.split()])
    assert words in capsys.readouterr().err


def test_the_default_step_has_256_rows_and_small_datasets_have_more_epochs():
    lstm = [*FILES, "--model", "lstm"]
    settings = ([], ["--global-batch", "256", "--epochs", "3"])
    config, other = (parse_arguments([*lstm, *each]).optimisation for each in settings)
    assert (config.batch_for(3), config.requested_batch(3), other.requested_batch(3)) == (256, None, 256)
    assert [config.epochs_for(steps) for steps in (1, 2, 8, 25, 30, 64, 84, 10**6)] == [192, 96, 24, 20, 17, 8, 6, 6]
    assert other.epochs_for(1) == 3


@pytest.mark.parametrize("beside", [{}, {"epochs": 3}], ids=["alone", "beside epochs"])
def test_an_unknown_preset_is_refused_with_any_other_option(beside, messages):
    with messages.raises(TrainingError):
        configured({"data": Path("d"), "output": Path("o"), "preset": "refrence", **beside})


def test_the_help_of_the_model_shows_the_defaults_of_other_models():
    (model,) = (each for each in options_for("classes") if each.name == "model")
    lstm, fasttext = model.text.split("for lstm: ")[1].split("; for fasttext: ")
    assert "--optimiser adam" in lstm
    assert "--ngrams 2" in fasttext


def test_a_model_in_the_registry_is_a_choice_with_its_description(monkeypatch):
    monkeypatch.setattr("trainer.config.MODELS", {**MODELS, "gru": Model(about="a GRU")})
    (model,) = (each for each in options_for("classes") if each.name == "model")
    assert model.choices == (*CLASSIFIERS, "gru")
    assert "gru, a GRU" in model.text
    (model,) = (each for each in options_for("words") if each.name == "model")
    assert model.choices == WORD_MODELS
