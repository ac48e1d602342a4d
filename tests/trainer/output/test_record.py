"""Record: JSON lines are appended, and an incomplete line does no harm."""

import json
import shutil
import sys
import time
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from trainer.output.lines import Note
from trainer.output.reporter import Record, Reporter, print_notice

THROUGHPUT = SimpleNamespace(rows_per_second=4.0, balanced=1.0)


def open_reporter(output):
    """Return the reporter of the first of two ranks."""
    ranks = SimpleNamespace(
        rank=0, world_size=2, is_first=True, gather=lambda name: [name, "rank 1"], agreement=nullcontext
    )
    return Reporter(output, ranks, rows=20, seen=0, fresh=True)


def report_of(step, pieces):
    return SimpleNamespace(step=step, loss=0.5, rows=np.array([2, 2]), seconds=np.ones(2), pieces=np.array(pieces))


def written(output):
    return [json.loads(line) for line in (output / "record.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("fresh", "kept"), [(False, ['{"kind": "start"}', '{"kind": "st']), (True, [])])
def test_a_line_is_visible_immediately_after_those_of_the_resumed_run(tmp_path, fresh, kept):
    path = tmp_path / "r"
    path.write_text('{"kind": "start"}\n{"kind": "st')
    with closing(Record(path, fresh=fresh)) as record:
        record.write(Note(text="again"))
        *before, last = path.read_text().splitlines()
    assert before == kept
    assert json.loads(last)["text"] == "again"


def test_an_unwritable_notice_does_not_end_the_run(monkeypatch):
    with Path("/dev/full").open("w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        print_notice("a sentence")
        with closing(Record(Path("/dev/full"), fresh=True)) as record:
            record.write(Note(text="lost"))
        monkeypatch.undo()
        with suppress(OSError):
            full.close()  # its buffer still contains the lost text


def test_a_full_disk_is_reported_once_and_does_not_end_the_run_and_other_ranks_report_nothing(capsys):
    with closing(Record(Path("/dev/full"), fresh=True)) as record:
        record.write(Note(text="lost"))
        record.write(Note(text="lost"))
    with closing(Record(None, fresh=True)) as record:  # on other ranks
        record.write(Note(text="lost"))
    assert capsys.readouterr().err.count("cannot write /dev/full: No space left on device") == 1


@pytest.mark.parametrize("how", ["removed", "moved", "replaced", "kept"])
def test_a_record_notices_that_its_folder_is_missing(tmp_path, how):
    output = tmp_path / "run"
    output.mkdir()
    with closing(Record(output / "r", fresh=True)) as record:
        if how == "removed":
            shutil.rmtree(output)
        elif how != "kept":
            output.rename(tmp_path / "moved")
        if how == "replaced":
            output.mkdir()
            (output / "r").touch()
        assert record.missing == (how != "kept")


@pytest.mark.parametrize(
    ("seconds_a_step", "steps", "taken"),
    [(0.25, 8, [0, 2, 4, 6, 7]), (2.0, 4, [0, 1, 2, 3]), (0.01, 143, [0, 50, 100, 142])],
)
def test_recorded_steps_are_half_a_second_apart_except_the_last(tmp_path, monkeypatch, seconds_a_step, steps, taken):
    reporter = open_reporter(tmp_path)
    clock = SimpleNamespace(time=time.time)
    monkeypatch.setattr("trainer.output.reporter.time", clock)
    with reporter:
        for step in range(steps):
            clock.monotonic = lambda step=step: 1000 + step * seconds_a_step
            reporter.step(report_of(step, [0, 0]), THROUGHPUT, epoch=1, last=step + 1 == steps)
    assert [line["step"] - 1 for line in written(tmp_path) if line["kind"] == "step"] == taken


def test_pieces_are_noted_only_when_they_change_and_different_weights_only_once(tmp_path, messages):
    with open_reporter(tmp_path) as reporter:
        for step, pieces in enumerate([[0, 0], [0, 8], [0, 8], [0, 1], [0, 1]]):
            reporter.step(report_of(step, pieces), THROUGHPUT, epoch=1, last=False)
        for most in (None, 1e-3, None, 2e-3):
            reporter.weights_synchronised(most)
    texts = [line["text"] for line in written(tmp_path) if line["kind"] == "note"]
    assert len(texts) == 3
    for text in texts:
        messages.check(text)
