"""Command line of the trainer: accepted and refused options, and options passed to ranks."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.command_line import as_arguments, from_option_values, option_values, parse_arguments
from trainer.config import configured
from trainer.registry import MODELS, PRESETS

FILES = ["--data", "d.h5", "--output", "out"]


@given(
    st.builds(
        lambda **given: configured({"model": "lstm", "data": Path("d.h5"), "output": Path("out"), **given}),
        epochs=st.none() | st.integers(1, 9),
        rank_batch=st.none() | st.integers(1, 99),
        learning_rate=st.floats(1e-6, 10),
        optimiser=st.sampled_from(["adam", "sgd"]),
        positive_weight=st.none() | st.floats(0.01, 10),
        slow=st.dictionaries(st.integers(0, 9), st.floats(1, 9), max_size=3),
        balance=st.sampled_from(["steps", "off", "epoch:1", "epoch:0.25", "3,1,1", "0.5,0"]),
        resume=st.booleans(),
        threads=st.none() | st.integers(1, 8),
    )
)
def test_a_configuration_survives_its_own_command_line(config):
    assert parse_arguments(as_arguments(config)) == config


@pytest.mark.parametrize("given", [{"model": model} for model in MODELS] + [{"preset": preset} for preset in PRESETS])
def test_option_values_of_any_model_or_preset_give_the_same_configuration(given):
    config = configured({"data": Path("d.h5"), "output": Path("out"), **given})
    assert from_option_values(option_values(config), endless=False) == config


def test_options_have_common_aliases_and_several_ranks_can_be_slowed_by_one_or_by_several():
    options = ("--lr", "0.5", "--batch-size", "64", "--optimizer", "adagrad", "--slow", "0:1.5", "1:2", "--slow", "2:3")
    config = parse_arguments([*FILES, *options])
    assert config.values().items() >= {"learning_rate": 0.5, "global_batch": 64, "optimiser": "adagrad"}.items()
    assert config.slow == {0: 1.5, 1: 2.0, 2: 3.0}


@pytest.mark.parametrize(
    "options", ["", "--global-batch 256", "--preset reference", "--preset reference --batch-size 64"]
)
def test_a_given_batch_size_is_passed_to_ranks(options):
    config = parse_arguments([*FILES, *options.split()])
    assert parse_arguments(as_arguments(config)) == config
    assert bool(options) == bool({"--global-batch", "--rank-batch", "--preset"} & set(as_arguments(config)))


def test_options_do_not_import_torch():
    program = "import sys, trainer.command_line; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_help_explains_every_option(capsys):
    with pytest.raises(SystemExit) as exit_:
        parse_arguments(["--help"])
    assert exit_.value.code == 0
    text = capsys.readouterr().out
    words = " ".join(text.split())
    for part in (
        "--global-batch",
        "over all ranks",
        "otherwise 256",
        "--slow RANK:FACTOR",
        "--preset",
        "lstm, char-lstm:",
    ):
        assert part in words
