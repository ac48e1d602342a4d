"""The record is JSON lines, appended, and survives a line that was cut short."""

import json
from pathlib import Path

from trainer.record import Record


def kinds(path: Path) -> list[str]:
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line)["kind"])
        except json.JSONDecodeError:
            found.append("broken")
    return found


def test_lines_are_there_as_soon_as_they_are_written(tmp_path: Path) -> None:
    with Record(tmp_path / "r", fresh=True) as record:
        record.write("step", loss=0.5)
        assert json.loads((tmp_path / "r").read_text())["loss"] == 0.5


def test_a_resumed_record_goes_on_after_half_a_line(tmp_path: Path) -> None:
    (tmp_path / "r").write_text('{"kind": "start"}\n{"kind": "st')
    with Record(tmp_path / "r", fresh=False) as record:
        record.write("start")
    assert kinds(tmp_path / "r") == ["start", "broken", "start"]


def test_a_fresh_record_replaces_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "r").write_text('{"kind": "end"}\n')
    with Record(tmp_path / "r", fresh=True) as record:
        record.write("start")
    assert kinds(tmp_path / "r") == ["start"]


def test_other_ranks_write_nothing(tmp_path: Path) -> None:
    with Record(None, fresh=True) as record:
        record.write("step")
    assert list(tmp_path.iterdir()) == []
