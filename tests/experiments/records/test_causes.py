"""Where the time of a run went: every second has one cause, whatever the record is."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.records import causes, runs
from tests.experiments import made_records as records

CASES = yaml.safe_load(Path(__file__).with_name("causes.yaml").read_text())


def run_of(folder: Path, *lines: Any, launch: dict[str, Any] | None = None) -> runs.RunRecord:
    records.write(folder, *lines)
    if launch is not None:
        (folder / "launch.json").write_text(json.dumps(launch))
    return runs.read_run(folder)


def near(value: float | None) -> Any:
    return value if value is None else pytest.approx(value, 1e-4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_every_second_and_dollar_has_its_cause(case: dict[str, Any], tmp_path: Path) -> None:
    run = run_of(tmp_path, *map(records.line, case["lines"]), launch=case.get("launch"))
    found = causes.causes(run)
    expected = [(name, near(seconds), near(dollars)) for name, seconds, dollars in case["causes"]]
    assert [(each.name, each.seconds, each.dollars) for each in found] == expected
    assert causes.goodput(run) == near(case["goodput"])
    assert run.left_out == 0


LINES = st.lists(
    st.one_of(
        st.builds(records.step, st.integers(1, 40), st.floats(0, 1e4)),
        st.builds(records.checkpoint, st.integers(1, 40), st.floats(0, 1e4)),
        st.builds(records.waiting, st.integers(1, 40), st.floats(0, 1e4), st.floats(0, 1e4)),
        st.builds(lambda at, step: records.start(at, from_step=step), st.floats(0, 1e4), st.integers(0, 20)),
        st.builds(records.end, st.floats(0, 1e4)),
        st.just(records.end(5000, **records.MEASURED)),
        st.just(records.end(5000, times={"loading": "much"}, lost=None, balanced=None)),
    ),
    max_size=12,
)
STAGE = {"name": "end the nodes", "seconds": 2.0, "dollars": 0.5}
LAUNCHES = st.sampled_from(
    [
        None,
        {},
        {"seconds": 40.0},
        {"stages": "none", "began": 50.0},
        {"stages": [{"name": 3}]},
        {"began": 50.0, "seconds": 40.0, "earlier": [{"began": 9e3}, {"seconds": 5.0}, {"stages": [STAGE]}]},
        {"earlier": 3},
    ]
)


@settings(max_examples=80)
@given(lines=LINES, launch=LAUNCHES)
def test_no_cause_is_negative_and_goodput_is_a_share(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], launch: dict[str, Any] | None
) -> None:
    run = run_of(tmp_path_factory.mktemp("run"), records.start(0), *lines, launch=launch)
    found = causes.causes(run)
    assert all(each.seconds >= 0 for each in found)
    share = causes.goodput(run)
    assert share is None or 0 <= share <= 1 + 1e-9
