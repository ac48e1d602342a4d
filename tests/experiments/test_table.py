"""Rows of the table of runs: repeated runs, the comparison with a baseline, settings that differ, and warnings."""

from pathlib import Path
from typing import Any

import pytest

from common.errors import ExperimentError
from experiments import table
from experiments.records import read_run, read_runs
from experiments.table import Row
from tests.experiments import made_records as records


def run(folder: Path, seconds: float = 10.0, *, ranks: int = 1, accuracy: float = 0.85, **config: Any) -> Path:
    """Write a finished run of 1,280 rows, with a seed that follows from its folder."""
    seed = int(folder.name) if folder.name.isdecimal() else 0
    started = records.start(
        config={**records.CONFIG, "seed": seed, **config}, world_size=ranks, devices=["CPU"] * ranks
    )
    ended = {"seconds": seconds, "samples_per_second": 1280 / seconds, "share_of_ideal": 0.9}
    return records.write(
        folder, started, records.step(1, 101.0), records.tested(111.0, accuracy=accuracy), records.end(112.0, **ended)
    )


def rows(folder: Path, baseline: Path | None = None) -> dict[str, Row]:
    return {row.name: row for row in table.make_rows(table.group_runs(read_runs([folder])[0]), baseline)}


def test_repeated_runs_have_one_row(tmp_path: Path) -> None:
    for repeat, seconds, accuracy in ((1, 10.0, 0.8), (2, 30.0, 0.9), (3, 20.0, 0.7)):
        run(tmp_path / "small" / str(repeat), seconds, accuracy=accuracy)
    records.write(
        tmp_path / "small/4", records.start(config={**records.CONFIG, "seed": 4}, world_size=1, devices=["CPU"])
    )
    run(tmp_path / "alone")
    found = rows(tmp_path)
    assert list(found) == ["alone", "small"]
    small, alone = found["small"], found["alone"]
    assert (small.state, small.runs, alone.state, alone.runs) == ("3 of 4 finished", 3, "finished", 1)
    assert (small.seconds, small.least, small.most) == (20.0, 10.0, 30.0)
    assert (alone.seconds, alone.least, alone.most) == (10.0, None, None)
    assert (small.rows_per_second, small.measures["accuracy"]) == (64.0, pytest.approx(0.8))
    assert small.folder == str(tmp_path / "small")


def test_numbered_runs_with_different_settings_are_not_repeats(tmp_path: Path) -> None:
    for number in (1, 2):
        run(tmp_path / "mixed" / str(number), hidden=8 * number)
    assert [row.settings["hidden"] for row in rows(tmp_path).values()] == [8, 16]


def test_rows_are_compared_with_the_baseline(tmp_path: Path) -> None:
    run(tmp_path / "one", 10.0)
    run(tmp_path / "two", 6.25, ranks=2)
    run(tmp_path / "larger", 20.0, ranks=2, hidden=64)
    run(tmp_path / "slowed", 8.0, ranks=2, slow={"1": 2.0})
    records.write(tmp_path / "new", records.start())
    found = rows(tmp_path, tmp_path / "one")
    assert {name: row.speed_up for name, row in found.items()} == {
        "one": 1.0,
        "two": pytest.approx(1.6),
        "larger": 0.5,
        "slowed": pytest.approx(1.25),
        "new": None,
    }
    assert {name for name, row in found.items() if row.efficiency is not None} == {"one", "two"}
    assert found["two"].efficiency == pytest.approx(0.8)


def test_a_baseline_that_is_no_row_is_an_error(tmp_path: Path, messages) -> None:
    run(tmp_path / "one")
    with messages.raises(ExperimentError):
        rows(tmp_path, tmp_path / "other")


def test_names_are_the_shortest_distinct_endings_of_paths() -> None:
    folders = [Path("/a/one/1"), Path("/a/two/1"), Path("/b/three")]
    assert table.short_names(folders) == ["one/1", "two/1", "b/three"]
    assert table.short_names(folders[:1]) == ["1"]


def test_settings_list_the_differences_between_runs(tmp_path: Path) -> None:
    run(tmp_path / "a")
    run(tmp_path / "b", hidden=64, output="other")
    found = rows(tmp_path)
    assert [row.settings for row in found.values()] == [{"hidden": 32}, {"hidden": 64}]
    assert table.common_measures([*found.values()]) == ["accuracy"]
    assert table.warnings(read_runs([tmp_path])[0]) == []


@pytest.mark.parametrize(("rows", "warnings"), [(150, 1), (200, 0)])
def test_a_small_test_set_gives_a_warning(rows, warnings, tmp_path):
    confusion = {"classes": ["bad", "good"], "counts": [[rows, 0], [0, 0]]}
    folder = records.write(tmp_path, records.start(), records.step(1, 101.0), records.tested(111, confusion=confusion))
    assert len(table.warnings([read_run(folder)])) == warnings


def test_the_text_of_settings_has_zeros_and_leaves_out_empty_ones():
    empty = {"threads": None, "note": "", "slow": {}, "names": [], "layers": ()}
    zeros = {"dropout": 0.0, "seed": 0, "adam": False}
    assert table.settings_text({**zeros, **empty}) == "dropout 0, seed 0, adam False"
    filled = {"slow": {1: 2.5, 2: 3}, "rates": [0.0, 1e-5], "layers": (64, 8)}
    assert table.settings_text(filled) == "slow 1:2.5 2:3, rates 0 1e-05, layers 64 8"
