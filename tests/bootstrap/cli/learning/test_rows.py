"""Results of experiments as tables and as JSON (rows.yaml)."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from bootstrap.cli.learning.experiment import found_result
from bootstrap.cli.output import print_result
from experiments.plans.parts import Experiment
from experiments.plans.stored import StoredExperiment
from experiments.results import ArmResult, ExperimentResult, Spread

EXPECTED: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("rows.yaml").read_text())


def arm(name: str, **changes: Any) -> ArmResult:
    unknown = dict.fromkeys(ArmResult.__dataclass_fields__)
    plain = {"name": name, "folder": Path("out", name), "settings": {"dim": 8}, "runs": (), "measures": {}, "words": {}}
    return ArmResult(**{**unknown, **plain, "finished": 2, "remark": "", "problems": (), **changes})


def experiment(kind: str, *arms: ArmResult) -> ExperimentResult:
    about = {
        "about": "Two ways",
        "kind": kind,
        "repeats": 2,
        "baseline": "one",
        "arms": [{"name": arm.name, "local": {"ranks": 1}} for arm in arms],
    }
    damaged = replace(arms[-1], problems=["run 3 is damaged"])
    kept = StoredExperiment(name="mine", experiment=Experiment.model_validate(about), cores=2)
    return ExperimentResult(folder=Path("out"), kept=kept, arms=(*arms[:-1], damaged))


LEARNED = {"seconds_an_epoch": 4.0, "words_a_second": 12_345.6, "pip_loss": 0.125, "pip_mean_square": 0.5, "loss": 2.25}
EXPERIMENTS = {
    "words": experiment(
        "words",
        arm("one", ranks=1, seconds=Spread(8.0, 7.5, 9.0), words=LEARNED),
        arm("two", ranks=2, seconds=Spread(5.0, 5.0, 5.0), bytes_a_step=2_500.0, speed_up=1.6, efficiency=0.8),
        arm("none", finished=0),
    ),
    "training": experiment(
        "training",
        arm("one", ranks=1, rate=Spread(1_000.0, 1_000.0, 1_000.0), measures={"accuracy": 0.9, "similarity": 0.5}),
        arm("two", ranks=2, of_bound=0.75, dollars=1.5, remark="see below"),
    ),
}


def shown(result: ExperimentResult) -> str:
    stream = StringIO()
    print_result(found_result(result), stream)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_shown_as_a_table(name) -> None:
    assert shown(EXPERIMENTS[name]).splitlines() == EXPECTED[f"table of {name}"].splitlines()


def test_a_folder_with_a_space_is_quoted_in_advice() -> None:
    *_, advice = shown(replace(EXPERIMENTS["words"], folder=Path("my runs"))).splitlines()
    assert advice == "A report of all runs: shoal report 'my runs'"


def test_an_experiment_has_json_content() -> None:
    content = json.loads(json.dumps(found_result(EXPERIMENTS["words"]).content))
    assert content == EXPECTED["content of words"]
