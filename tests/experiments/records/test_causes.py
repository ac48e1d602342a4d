"""Where the time of a run went: every second has one cause, whatever the record is."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.records import causes, runs
from tests.experiments import made_records as records

TIMES = {"loading": 1.0, "rates": 2.0, "training": 9.0, "checkpoints": 1.0, "evaluation": 0.5, "other": 0.5}
LOST = {"imbalance": 0.1, "communication": 0.15, "data": 0.02, "checkpoints": 0.1, "rest": 0.03}
MEASURED = {"times": TIMES, "lost": LOST, "balanced": 0.6, "wall": 14.0}


def run_of(folder: Path, *lines: Any, launch: dict[str, Any] | None = None) -> runs.RunRecord:
    records.write(folder, *lines)
    if launch is not None:
        (folder / "launch.json").write_text(json.dumps(launch))
    return runs.read_run(folder)


def seconds_of(run: runs.RunRecord) -> dict[str, float]:
    return {each.name: each.seconds for each in causes.causes(run)}


def finished(folder: Path, **launch: Any) -> runs.RunRecord:
    return run_of(
        folder, records.start(100), records.step(20, 112), records.end(114, **MEASURED), launch=launch or None
    )


def test_the_time_of_the_steps_is_divided_by_what_was_lost(tmp_path: Path) -> None:
    found = seconds_of(finished(tmp_path))
    assert found[causes.COMPUTING] == pytest.approx(6.0)
    assert found[causes.WAITING] == pytest.approx(1.0)
    assert found[causes.ALL_REDUCE] == pytest.approx(1.5)
    assert found[causes.LOADING] == 1.0
    assert sum(found.values()) == pytest.approx(14.0)
    assert causes.goodput(finished(tmp_path)) == pytest.approx(6 / 14)


def test_what_the_launch_took_besides_is_its_start_and_end(tmp_path: Path) -> None:
    found = seconds_of(finished(tmp_path, seconds=20.0))
    assert found[causes.STARTING] == pytest.approx(6.5)
    assert sum(found.values()) == pytest.approx(20.0)


def test_dollars_of_a_stage_are_divided_by_its_seconds(tmp_path: Path) -> None:
    stages = [
        {"name": "start the nodes", "seconds": 60.0, "dollars": 1.0},
        {"name": "train", "seconds": 28.0, "dollars": 2.0},
    ]
    found = causes.causes(finished(tmp_path, stages=stages, cost=3.0, seconds=88.0))
    dollars = {each.name: each.dollars for each in found}
    assert dollars["start the nodes"] == 1.0
    assert dollars[causes.COMPUTING] == pytest.approx(2.0 * 6 / 28)
    assert sum(each.dollars or 0.0 for each in found) == pytest.approx(3.0)
    assert sum(each.seconds for each in found) == pytest.approx(88.0)


def test_what_a_fault_took_is_told_apart_from_what_counts(tmp_path: Path) -> None:
    found = seconds_of(
        run_of(
            tmp_path,
            records.start(100),
            records.step(10, 106),
            records.checkpoint(10, 106),
            records.step(14, 108),
            records.start(118, from_step=10),
            records.step(20, 124),
            records.end(126, **MEASURED),
        )
    )
    assert found[f"earlier: {causes.REPEATED}"] == 2.0
    assert found[f"earlier: {causes.DOWN}"] == 10.0


def test_waiting_for_text_is_told_apart_from_waiting_for_others(tmp_path: Path) -> None:
    ended = records.end(120, **MEASURED | {"times": {**TIMES, "waiting": 6.0}})
    found = seconds_of(run_of(tmp_path, records.start(100), records.step(20, 112), ended))
    assert found[causes.TEXT] == 6.0
    assert found[causes.WAITING] == pytest.approx(1.0)
    assert sum(found.values()) == pytest.approx(20.0)


def test_waiting_for_text_is_known_of_a_start_that_was_cut_off_too(tmp_path: Path) -> None:
    waits = (records.waiting(10, 104), records.waiting(10, 107, 3.0), records.waiting(15, 108))
    lines = (records.start(100), *waits, records.step(20, 110), records.start(118, from_step=20))
    found = seconds_of(run_of(tmp_path, *lines, records.waiting(20, 120), records.waiting(20, 121, 1.0)))
    assert found[f"earlier: {causes.TEXT}"] == 3.0
    assert found[causes.TEXT] == 1.0
    assert runs.read_run(tmp_path).left_out == 0
    assert sum(found.values()) == pytest.approx(21.0)


def test_the_time_from_a_launch_to_its_first_line_is_counted_once(tmp_path: Path) -> None:
    lines = (records.start(100), records.step(10, 106), records.start(118, from_step=10), records.step(20, 124))
    found = run_of(tmp_path, *lines, records.end(126, **MEASURED), launch={"began": 111.0, "seconds": 20.0})
    assert seconds_of(found)[f"earlier: {causes.DOWN}"] == 5.0
    assert sum(seconds_of(found).values()) == pytest.approx(111 + 20 - 100)


def test_a_start_that_was_stopped_is_told_apart_in_full(tmp_path: Path) -> None:
    stopped = records.end(114, **MEASURED, stopped=True)
    lines = (records.start(100), records.step(10, 106), stopped, records.start(140, from_step=10))
    found = seconds_of(run_of(tmp_path, *lines, records.step(20, 150), records.end(154, **MEASURED)))
    assert found[f"earlier: {causes.COMPUTING}"] == pytest.approx(6.0)
    assert found[f"earlier: {causes.ALL_REDUCE}"] == pytest.approx(1.5)
    assert f"earlier: {causes.MIXED}" not in found
    assert sum(found.values()) == pytest.approx(28.0)


def test_each_launch_has_its_own_stages_and_dollars(tmp_path: Path) -> None:
    def launch(began: float, train: float, cost: float) -> dict[str, Any]:
        stages = [
            {"name": "start the nodes", "seconds": 10.0, "dollars": 1.0},
            {"name": "train", "seconds": train, "dollars": cost - 1.0},
        ]
        return {"began": began, "seconds": train + 10.0, "stages": stages, "cost": cost}

    stopped = records.end(114, **MEASURED, stopped=True)
    lines = (records.start(100), records.step(10, 106), stopped, records.start(1010, from_step=10))
    run = run_of(
        tmp_path,
        *lines,
        records.step(20, 1020),
        records.end(1024, **MEASURED),
        launch={**launch(1000, 15.0, 3.0), "earlier": [launch(90, 14.0, 2.5), "what is none"]},
    )
    found = {each.name: each for each in causes.causes(run)}
    assert (run.dollars, run.launched) == (5.5, 49.0)
    assert found["earlier: start the nodes"].dollars == 1.0
    assert found[f"earlier: {causes.COMPUTING}"].dollars == pytest.approx(1.5 * 6 / 14)
    assert found[causes.COMPUTING].dollars == pytest.approx(2.0 * 6 / 15)
    assert sum(each.seconds for each in found.values()) == pytest.approx(49.0)
    assert sum(each.dollars or 0.0 for each in found.values()) == pytest.approx(5.5)


def test_a_launch_without_steps_took_time_and_money_too(tmp_path: Path) -> None:
    early = {"began": 10.0, "seconds": 40.0, "cost": 0.5}
    run = finished(tmp_path, began=95.0, seconds=20.0, cost=2.0, earlier=[early])
    found = {each.name: each for each in causes.causes(run)}
    assert found[f"earlier: {causes.STARTING}"].dollars == 0.5
    assert sum(each.seconds for each in found.values()) == pytest.approx(60.0)


def test_of_a_run_that_goes_on_again_the_launch_before_is_told_apart(tmp_path: Path) -> None:
    stopped = records.end(114, **MEASURED, stopped=True)
    lines = (records.start(100), records.step(10, 106), stopped, records.start(140, from_step=10))
    run = run_of(tmp_path, *lines, records.step(20, 150), launch={"began": 95.0, "seconds": 20.0, "cost": 3.0})
    found = {each.name: each for each in causes.causes(run)}
    assert found[f"earlier: {causes.STARTING}"].seconds == pytest.approx(6.5)
    assert sum(each.dollars or 0.0 for each in found.values()) == pytest.approx(3.0)
    assert sum(each.seconds for each in found.values()) == pytest.approx(30.0)


def test_of_a_run_that_goes_on_computing_is_known_and_the_rest_is_not_told_apart(tmp_path: Path) -> None:
    run = run_of(tmp_path, records.start(100), records.step(15, 101), records.step(15, 102))
    found = seconds_of(run)
    assert found[causes.COMPUTING] == pytest.approx(15 * 64 / 1200 * 0.9)
    assert sum(found.values()) == pytest.approx(2.0)


LINES = st.lists(
    st.one_of(
        st.builds(records.step, st.integers(1, 40), st.floats(0, 1e4)),
        st.builds(records.checkpoint, st.integers(1, 40), st.floats(0, 1e4)),
        st.builds(records.waiting, st.integers(1, 40), st.floats(0, 1e4), st.floats(0, 1e4)),
        st.builds(lambda at, step: records.start(at, from_step=step), st.floats(0, 1e4), st.integers(0, 20)),
        st.builds(records.end, st.floats(0, 1e4)),
        st.just(records.end(5000, **MEASURED)),
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
