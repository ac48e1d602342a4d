"""Runs are read from their records, also if they are unfinished, were resumed, or were cut off."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ExperimentError
from experiments import records as runs
from tests.experiments import made_records as records


def test_a_finished_run_has_its_steps_measures_and_summary(tmp_path: Path) -> None:
    run = runs.read_run(records.whole(tmp_path / "one"))
    assert (run.folder.name, run.state, run.left_out) == ("one", "finished", 0)
    assert [step.step for step in run.steps] == [1, 10, 20]
    assert run.measures == {"accuracy": 0.85, "majority": 0.6}
    assert run.seconds == pytest.approx(11.5)
    assert run.dollars is None


def test_an_unfinished_run_has_the_measures_of_its_latest_epoch(tmp_path: Path) -> None:
    cut = '{"kind": "step", "time": 10'
    run = runs.read_run(
        records.write(tmp_path, records.start(), records.step(1, 101), records.epoch(1, 102, accuracy=0.7), cut)
    )
    assert (run.state, run.summary, run.left_out) == ("unfinished", None, 1)
    assert run.measures["accuracy"] == 0.7


def test_only_the_last_of_repeated_steps_counts(tmp_path: Path) -> None:
    first = [records.start(100), records.step(5, 103), records.checkpoint(8, 104), records.epoch(1, 106)]
    again = [records.start(120, from_step=8), records.step(12, 124, loss=0.4), records.epoch(1, 122), records.end(130)]
    run = runs.read_run(records.write(tmp_path, *first, records.step(12, 107, loss=0.9), *again))
    assert [(step.step, step.loss) for step in run.steps] == [(5, 0.5), (12, 0.4)]
    assert [epoch.time for epoch in run.epochs] == [122]
    assert [(each.start.time, each.until) for each in run.sessions] == [(100, 107), (120, 130)]


LINES = st.one_of(
    st.binary(max_size=40).filter(lambda raw: b"\n" not in raw and b"\r" not in raw),
    st.sampled_from([records.start(), records.step(3, 104), records.epoch(1, 105), records.tested(106)]).flatmap(
        lambda line: st.sampled_from(sorted(line)).map(lambda name: json.dumps({**line, name: "wrong"}).encode())
    ),
)


@pytest.mark.parametrize("counts", [[[1, 2]], [[1, -2], [3, 4]], [[1, "2"], [3, 4]], None])
def test_an_invalid_confusion_matrix_is_left_out(counts, tmp_path) -> None:
    tested = records.tested(111, confusion={"classes": ["bad", "good"], "counts": counts}, mistakes={"class": "bad"})
    run = runs.read_run(records.write(tmp_path, records.start(), records.step(1, 101.0), tested))
    assert (run.confusion, run.mistakes) == (None, [])


@given(garbage=st.lists(LINES, max_size=6))
def test_invalid_lines_are_counted_and_change_nothing(garbage, tmp_path_factory) -> None:
    folder = records.whole(tmp_path_factory.mktemp("run"))
    expected, record = runs.read_run(folder), folder / "record.jsonl"
    first, *rest = record.read_bytes().splitlines()
    known = [line for line in garbage if b'"wrong"' not in line or b'"kind": "wrong"' in line or _is_checked(line)]
    record.write_bytes(b"\n".join([first, *known, *rest]))
    found = runs.read_run(folder)
    assert (found.steps, found.epochs, found.test) == (expected.steps, expected.epochs, expected.test)
    assert found.left_out == sum(bool(line.strip()) for line in known)


def _is_checked(line: bytes) -> bool:
    """Return whether runs.py checks the wrong field."""
    (wrong,) = [name for name, value in json.loads(line).items() if value == "wrong"]
    return wrong not in ("accuracy", "majority", "precision", "digest")


def test_a_folder_gives_each_run_below_it_once(tmp_path: Path) -> None:
    for name in ("b/two", "a", "b/one"):
        records.whole(tmp_path / name)
    found = runs.find_runs([tmp_path, tmp_path / "a"])
    assert [each.relative_to(tmp_path).as_posix() for each in found] == ["a", "b/one", "b/two"]


def test_an_unreadable_run_is_left_out_and_reported(tmp_path: Path) -> None:
    records.whole(tmp_path / "whole")
    records.write(tmp_path / "damaged", "{}")
    found, (problem,) = runs.read_runs([tmp_path])
    assert [run.folder.name for run in found] == ["whole"]
    with pytest.raises(ExperimentError) as refused:
        runs.read_runs([tmp_path / "damaged"])
    assert str(refused.value) == problem


@pytest.mark.parametrize("name", ["record.jsonl", "summary.json", "launch.json"])
def test_a_run_with_a_pipe_as_a_file_is_found_and_refused(name: str, tmp_path: Path, monkeypatch, messages) -> None:
    records.whole(tmp_path / "run")
    (tmp_path / "run" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "run" / name)
    monkeypatch.chdir(tmp_path)
    (found,) = runs.find_runs([Path()])
    with messages.raises(ExperimentError):
        runs.read_run(found)


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_a_folder_without_a_run_is_an_error(tmp_path: Path, name: str, messages) -> None:
    (tmp_path / "empty").mkdir()
    with messages.raises(ExperimentError):
        runs.find_runs([tmp_path / name])


def test_a_record_without_a_start_is_refused(tmp_path: Path, messages) -> None:
    with messages.raises(ExperimentError):
        runs.read_run(records.write(tmp_path / "one", records.step(1, 101), "{}"))
