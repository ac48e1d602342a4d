"""Record: JSON lines are appended, and an incomplete line does no harm."""

import json
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from trainer.output.lines import Note
from trainer.output.reporter import Record, StepSampling, print_notice


def kinds(path: Path) -> list[str]:
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line)["kind"])
        except json.JSONDecodeError:
            found.append("broken")
    return found


def test_lines_are_visible_immediately(tmp_path):
    with Record(tmp_path / "r", fresh=True) as record:
        record.write(Note(text="gone"))
        assert json.loads((tmp_path / "r").read_text())["text"] == "gone"


def test_a_resumed_record_continues_after_an_incomplete_line(tmp_path):
    (tmp_path / "r").write_text('{"kind": "start"}\n{"kind": "st')
    with Record(tmp_path / "r", fresh=False) as record:
        record.write(Note(text="again"))
    assert kinds(tmp_path / "r") == ["start", "broken", "note"]


def test_a_fresh_record_replaces_the_old_one(tmp_path):
    (tmp_path / "r").write_text('{"kind": "end"}\n')
    with Record(tmp_path / "r", fresh=True) as record:
        record.write(Note(text="again"))
    assert kinds(tmp_path / "r") == ["note"]


def test_other_ranks_write_nothing(tmp_path):
    with Record(None, fresh=True) as record:
        record.write(Note(text="lost"))
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_notice_does_not_end_the_run(monkeypatch):
    with Path("/dev/full").open("w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        print_notice("a sentence")
        with Record(Path("/dev/full"), fresh=True) as record:
            record.write(Note(text="lost"))
        monkeypatch.undo()
        with suppress(OSError):
            full.close()  # its buffer still contains the lost text


def test_a_full_disk_is_reported_once_and_does_not_end_the_run(capsys):
    with Record(Path("/dev/full"), fresh=True) as record:
        record.write(Note(text="lost"))
        record.write(Note(text="lost"))
    assert capsys.readouterr().err.count("cannot write /dev/full: No space left on device") == 1


@pytest.mark.parametrize(
    ("every", "seconds_a_step", "steps", "first", "taken"),
    [
        (10, 0.25, 35, 0, [0, 10, 20, 30, 34]),
        (10, 2.0, 20, 0, [0, 3, 6, 9, 10, 13, 16, 19]),
        (10, 60.0, 4, 0, [0, 1, 2, 3]),
        (10, 0.01, 143, 0, [0, 50, 100, 142]),
        (10, 0.25, 42, 17, [17, 20, 30, 40, 41]),  # a resumed run
        (1, 0.001, 9, 0, list(range(9))),
    ],
)
def test_steps_are_sampled_by_number_and_by_time(every, seconds_a_step, steps, first, taken):
    takes, last = StepSampling(every).takes, steps - 1
    assert taken == [
        step for step in range(first, steps) if takes(step, last=step == last, now=1000 + step * seconds_a_step)
    ]
