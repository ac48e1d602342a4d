"""Arms that start from a language model: one pretraining for all that have the same settings."""

from pathlib import Path

import pytest

from common.errors import ExperimentError
from experiments.plans.arm_settings import config_of
from experiments.plans.experiment_files import load
from experiments.plans.kept import Kept, require_same
from experiments.plans.planned import planned_runs, pretraining_folder, pretraining_runs
from experiments.plans.prices import DatasetSize, training_price
from infra import topology
from trainer.registry import LANGUAGE_MODELS

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
OUT = Path("out")
HEAD = "about: x\nkind: training\n"
ARM = "name: {}, local: {{ranks: 1}}, topology: starter"
FOUR = f"""\
{HEAD}pretraining: {{epochs: 2, hidden: 8}}
arms:
  - {{{ARM.format("none")}, settings: {{model: fasttext}}}}
  - {{{ARM.format("few")}, pretraining: {{train_share: 0.1}}, settings: {{train_rows: 10}}}}
  - {{{ARM.format("more")}, pretraining: {{train_share: 0.1}}}}
  - {{{ARM.format("all")}, pretraining: {{}}}}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def test_arms_with_the_same_settings_share_a_pretraining(tmp_path: Path) -> None:
    experiment = load(written(tmp_path, FOUR)).experiment
    few, every = pretraining_runs(experiment, experiment.arms, OUT)
    assert few.pretrains
    assert few.called == "pretraining for few"
    none, *starts = (pretraining_folder(experiment, arm, OUT) for arm in experiment.arms)
    assert (none, starts) == (None, [few.folder, few.folder, every.folder])
    assert few.folder.parent == OUT / ".pretraining"
    config = config_of(experiment, few, data=Path("d.h5"), local=True)
    assert (config.model, config.train_share, config.epochs, config.hidden) == (LANGUAGE_MODELS[0], 0.1, 2, 8)
    run = planned_runs(experiment.arms, 2, OUT)[5]
    made = config_of(experiment, run, data=Path("d.h5"), local=True, start_from=few.folder)
    assert (made.model, made.start_from, made.train_rows, made.seed) == ("pretrained", str(few.folder), 10, 2)


def test_a_pretraining_has_a_price_before_its_classifiers(tmp_path: Path) -> None:
    experiment = load(written(tmp_path, FOUR)).experiment
    chosen = topology.load("starter", TOPOLOGIES)
    size = DatasetSize(train=20_000, test=2_000, words=200.0, unit="tokens")
    few, every = (
        training_price(chosen, config_of(experiment, each, data=Path("d.h5"), local=False), size)
        for each in pretraining_runs(experiment, experiment.arms, OUT)
    )
    assert few.seconds is not None
    assert every.seconds is not None
    assert few.seconds.middle < every.seconds.middle
    assert "T4 not measured" in every.basis


def test_other_settings_of_a_pretraining_are_not_mixed_with_runs_that_are_there(tmp_path: Path) -> None:
    before, now = (
        Kept(name="mine", experiment=load(written(tmp_path, text)).experiment, cores=2, data="d")
        for text in (FOUR, FOUR.replace("hidden: 8", "hidden: 9"))
    )
    (tmp_path / "out" / "few" / "1").mkdir(parents=True)
    require_same(before, before, tmp_path / "out")
    with pytest.raises(ExperimentError, match="'few' with other settings"):
        require_same(before, now, tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"{HEAD}arms:\n  - {{{ARM.format('a')}, pretraining: {{hiden: 8}}}}\n", "did you mean 'hidden'"),
        (f"{HEAD}arms:\n  - {{{ARM.format('a')}, pretraining: {{model: lstm}}}}\n", "lstm is no language model"),
        (f"{HEAD}arms:\n  - {{{ARM.format('a')}, pretraining: {{seed: 3}}}}\n", "the number of the repeat"),
        (
            f"{HEAD}pretraining: {{epochs: 0}}\narms:\n  - {{{ARM.format('a')}, pretraining: {{}}}}\n",
            "pretraining: --epochs",
        ),
        (f"{HEAD}pretraining: {{epochs: 1}}\narms:\n  - {{{ARM.format('a')}}}\n", "belongs to arms"),
        (
            f"{HEAD}arms:\n  - {{{ARM.format('a')}, pretraining: {{}}, settings: {{model: fasttext}}}}\n",
            "leave out model",
        ),
        (
            f"{HEAD}arms:\n  - {{{ARM.format('a')}, pretraining: {{}}, settings: {{start_from: b}}}}\n",
            "leave out start_from",
        ),
        (
            f"about: x\nkind: words\narms:\n  - {{{ARM.format('a')}, pretraining: {{}}}}\n",
            "goes with `kind: training`",
        ),
    ],
)
def test_what_is_wrong_in_a_pretraining_is_said_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ExperimentError, match=r"mine.yaml.*line \d") as error:
        load(written(tmp_path, text))
    assert sentence in str(error.value)
